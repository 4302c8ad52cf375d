// A file driver for HDF5 that never tells HDF5 about a failed write.
//
// HDF5 1.10 does not survive one: after a full disk has stopped it from writing its cached metadata, closing the file fails for
// good and the process crashes at exit (seen; it would take the run's exit code with it). So this driver notes the first error
// for the owner of the file, who gives the file up, and lets HDF5 go on with a copy in memory of what could not be written.
// Otherwise it does what HDF5's default driver does, and its files are no different.
#pragma once

#include <memory>

#include "io/h5.hpp"

namespace nsp::h5 {

// Shared by the owner of a file and the driver: if HDF5 keeps the file open longer, the driver still needs it.
struct WriteState {
  int error = 0;        // errno of the first write that failed; from then on nothing reaches the disk
  int open_error = 0;   // errno of the last open that failed; HDF5 tries without creating first, so this alone means nothing
  int descriptor = -1;  // of the open file
};

// Access properties for creating a file through the driver. The state must be fresh.
Id driver_access(const std::shared_ptr<WriteState>& state, const Check& check);

}  // namespace nsp::h5
