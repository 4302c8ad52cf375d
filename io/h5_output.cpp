#include "io/h5_output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/durable.hpp"

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
      check_(ErrorKind::io, "cannot write " + path_, "Earlier checkpoints are as they were. Check the free space, quota and permissions there.",
             [this] { divert(); }) {
  Session session;
  const Id access = file_access(check_);
  file_ = Id(check_(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get())), H5Fclose);
  try {
    void* handle = nullptr;
    check_(H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &handle));
    descriptor_ = *static_cast<int*>(handle);
    reserve(bytes);
  } catch (...) {
    file_.reset();
    remove_quietly(path_);
    throw;
  }
}

OutputFile::~OutputFile() noexcept {
  if (finished_) return;
  divert();  // nobody wants what is still in HDF5's caches
  file_.reset();
  remove_quietly(path_);
}

// A reservation makes the check of free space hold even if several ranks write to the same disk at once.
void OutputFile::reserve(int64_t bytes) {
#if defined(__linux__)
  if (bytes <= 0 || ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return;
  const int error = errno;
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return;  // this file system cannot reserve
  check_.fail(std::to_string(bytes) + " bytes are needed, " + std::to_string(free_bytes(folder_of(path_))) + " are free: " + errno_text(error));
#else
  (void)bytes;
#endif
}

// HDF5 (1.10 at least) crashes when it closes a file whose cached metadata cannot be written, as on a full disk: seen as a
// segmentation fault at exit. The file is lost anyway, so its descriptor is turned to memory, where the rest can be written.
void OutputFile::divert() noexcept {
  if (descriptor_ < 0) return;
  const int memory = ::memfd_create("nsp_abandoned", MFD_CLOEXEC);
  if (memory < 0) return;
  ::dup2(memory, descriptor_);
  ::close(memory);
  descriptor_ = -1;
}

void OutputFile::finish() {
  Session session;
  check_(H5Fflush(file_.get(), H5F_SCOPE_LOCAL));  // may still find the disk full; afterwards closing needs no room
  descriptor_ = -1;
  check_(H5Fclose(file_.release()));
  trim(path_);
  sync_file(path_);
  finished_ = true;
}

}  // namespace nsp::h5
