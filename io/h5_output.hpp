// An HDF5 file that is being written: it either becomes complete and durable or disappears.
#pragma once

#include "io/h5.hpp"
#include "io/h5_driver.hpp"

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
  // For every call that touches the file: also finds writes that failed behind HDF5's back. After a failure the file is lost.
  const Check& check() const noexcept { return check_; }
  // Closes the file and makes it durable (the folder is the caller's); Error(io). sealed: with a seal at its end (io/file_seal.hpp).
  void finish(bool sealed = false);

 private:
  void reserve(int64_t bytes);
  void give_up() noexcept;

  std::string path_;
  std::shared_ptr<WriteState> state_;  // see WriteState
  Check check_;
  Id file_;
  bool finished_ = false;
};

}  // namespace nsp::h5
