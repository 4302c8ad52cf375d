// A seal at the end of a file: its length and XXH64 in the last 24 bytes.
//
// The HDF5 library is not made for damaged files: some of them crash it. So a manifest, which is read before anything is known
// about a checkpoint, is sealed when it is written, and HDF5 sees it only if the seal is right. HDF5 readers do not mind bytes
// behind the end that a file's own superblock states.
#pragma once

#include <string>

#include "io/h5.hpp"

namespace nsp {

// Appends the seal to a file that is complete. Error(io), with the text of check.
void seal_file(const std::string& path, const h5::Check& check);
// Throws what check throws, with the reason, unless the file ends with the seal of all that is before it.
void check_seal(const std::string& path, const h5::Check& check);

}  // namespace nsp
