#include "io/h5_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/durable.hpp"
#include "io/file_seal.hpp"

namespace nsp::h5 {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Blocks that were reserved beyond the end of the file go back to the file system.
void trim(const std::string& path) noexcept {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && ::truncate(path.c_str(), info.st_size) != 0) return;  // they stay reserved; no harm
}

}  // namespace

OutputFile::OutputFile(std::string path, int64_t bytes)
    : path_(std::move(path)),
      state_(std::make_shared<WriteState>()),
      check_(ErrorKind::io, "cannot write " + path_,
             "Earlier checkpoints are as they were. Check the free space, quota and permissions there.",
             [state = state_] { return state->error == 0 ? std::string() : errno_text(state->error); }) {
  Session session;
  const Id access = driver_access(state_, check_);
  const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get());
  if (file < 0 && state_->open_error != 0) check_.fail(errno_text(state_->open_error));
  file_ = Id(check_(file), H5Fclose);
  try {
    reserve(bytes);
  } catch (...) {
    give_up();
    throw;
  }
}

OutputFile::~OutputFile() noexcept {
  if (!finished_) give_up();
}

void OutputFile::give_up() noexcept {
  if (state_->error == 0) state_->error = ECANCELED;  // nobody wants what is still in HDF5's caches
  file_.reset();
  remove_quietly(path_);
}

// A reservation makes the check of free space hold even if several ranks write to the same disk at once.
void OutputFile::reserve(int64_t bytes) {
#if defined(__linux__)
  if (bytes <= 0 || ::fallocate(state_->descriptor, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return;
  const int error = errno;
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return;  // this file system cannot reserve
  check_.fail(std::to_string(bytes) + " bytes are needed, " + std::to_string(free_bytes(folder_of(path_))) +
              " are free: " + errno_text(error));
#else
  (void)bytes;
#endif
}

void OutputFile::finish(bool sealed) {
  Session session;
  check_(H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
  check_(H5Fclose(file_.release()));
  trim(path_);
  if (sealed) seal_file(path_, check_);
  sync_file(path_);
  finished_ = true;
}

}  // namespace nsp::h5
