#include "core/data/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "nsp/error.hpp"

namespace nsp {
namespace {
constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

// False with errno set when a write fails. Handles short writes.
bool write_all(int descriptor, const char* from, std::size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t n = ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    from += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}
}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp-" + std::to_string(::getpid())) {
  buffer_.reserve(buffer_bytes);
  descriptor_ = ::open(temporary_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw Error(ErrorKind::input, "cannot create " + path_ + ". " + std::strerror(errno) +
                                      ". Choose an output whose folder exists and may be written, and that has free space.");
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) const {
  throw Error(ErrorKind::io, std::string("cannot ") + what + " " + path_ + ". " + std::strerror(errno) +
                                 ". Free space on that file system or choose another output; nothing half-written was kept.");
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  if (end < 0 || !write_all(descriptor_, buffer_.data(), buffer_.size(), static_cast<uint64_t>(end))) fail("write");
  buffer_.clear();
}

void OutputFile::append(const void* data, std::size_t bytes) {
  NSP_REQUIRE(descriptor_ >= 0, "nothing is appended to a committed file");
  const auto* from = static_cast<const char*>(data);
  buffer_.insert(buffer_.end(), from, from + bytes);
  if (buffer_.size() >= buffer_bytes) flush();
}

void OutputFile::overwrite(uint64_t offset, const void* data, std::size_t bytes) {
  NSP_REQUIRE(descriptor_ >= 0, "a committed file is not changed");
  flush();
  if (!write_all(descriptor_, static_cast<const char*>(data), bytes, offset)) fail("write");
}

void OutputFile::commit() {
  NSP_REQUIRE(descriptor_ >= 0, "a file is committed once");
  flush();
  if (::fsync(descriptor_) != 0) fail("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished");
  const int finished = std::exchange(descriptor_, -1);
  // Some network file systems report a failed write only here.
  if (::close(finished) != 0) fail("close");
  sync_folder(std::filesystem::path(path_).parent_path().string());
}

void sync_folder(const std::string& folder) noexcept {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace nsp
