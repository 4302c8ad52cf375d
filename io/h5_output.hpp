// An HDF5 file that is being written: it either becomes complete and durable or disappears.
#pragma once

#include "io/h5.hpp"

namespace nsp::h5 {

class OutputFile {
 public:
  // Creates the file (replacing one) and reserves `bytes` of disk where the file system can; Error(io), also if there is no room.
  OutputFile(std::string path, int64_t bytes);
  // Not finished: removes the file.
  ~OutputFile() noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  hid_t id() const noexcept { return file_.get(); }
  const std::string& path() const noexcept { return path_; }
  // For every call that touches the file. A failure gives the file up: nothing more can be written.
  const Check& check() const noexcept { return check_; }
  // Closes the file and makes it durable (the folder is the caller's); Error(io).
  void finish();

 private:
  void reserve(int64_t bytes);
  void divert() noexcept;

  std::string path_;
  Check check_;
  Id file_;
  int descriptor_ = -1;  // HDF5's own; not ours to close
  bool finished_ = false;
};

}  // namespace nsp::h5
