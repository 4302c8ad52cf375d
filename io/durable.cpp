#include "io/durable.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nsp/error.hpp"

namespace nsp {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(ErrorKind::io, what + ". " + errno_text(error) + ". Check the file system, its free space and your permissions.");
}

void sync_path(const std::string& path, int flags, const char* kind) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) fail(std::string("cannot open ") + kind + " " + path + " to make it durable", errno);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  const bool cannot = (flags & O_DIRECTORY) != 0 && (error == EINVAL || error == ENOTSUP || error == EBADF);
  if (error != 0 && !cannot) fail(std::string("cannot make ") + kind + " " + path + " durable", error);
}

}  // namespace

std::string errno_text(int error) {
  return std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")";
}

// Opened for writing: NFS flushes only what the descriptor's user may write.
void sync_file(const std::string& path) {
  sync_path(path, O_RDWR, "file");
}
void sync_directory(const std::string& path) {
  sync_path(path, O_RDONLY | O_DIRECTORY, "folder");
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail("cannot rename " + from + " to " + to, errno);
}

void remove_quietly(const std::string& path) noexcept {
  ::unlink(path.c_str());
}

int64_t free_bytes(const std::string& folder) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) fail("cannot ask for the free space of " + folder, errno);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(room.f_bavail), static_cast<int64_t>(room.f_frsize), &bytes)) bytes = INT64_MAX;
  return bytes;
}

}  // namespace nsp
