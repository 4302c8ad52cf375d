#include "core/train/line_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nsp/error.hpp"

namespace nsp {
namespace {

std::string errno_name(int error) {
  return std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")";
}

int open_to_write(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file >= 0) return file;
  throw Error(ErrorKind::io, "cannot write " + path + ". " + errno_name(errno) +
                                 ". Make room, change the permissions of the run directory, or choose another with --run.dir.");
}

// Writes from the front and returns how many bytes went out; errno tells why not all.
std::size_t write_some(int file, const std::string& text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(file, text.data() + at, text.size() - at);
    if (n > 0)
      at += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR)
      break;
  }
  return at;
}

}  // namespace

LineFile::LineFile(const std::string& path, bool append) : path_(path) {
  ::close(open_to_write(path_, append ? 0 : O_TRUNC));
}

LineFile::~LineFile() noexcept {
  flush();
  const int file = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

void LineFile::add(const std::string& line) {
  if (waiting_.size() + line.size() < most_kept)
    waiting_ += line + "\n";
  else
    ++given_up_;
}

bool LineFile::flush() noexcept {
  if (waiting_.empty()) return true;
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  int error = errno;
  if (file >= 0) {
    waiting_.erase(0, write_some(file, waiting_));
    error = errno;
    ::close(file);
  }
  try {
    failure_ = waiting_.empty() ? "" : errno_name(error);
  } catch (...) {  // out of memory for a text
  }
  return waiting_.empty();
}

void replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  const int file = open_to_write(temporary, O_TRUNC);
  int error = 0;
  if (write_some(file, text) != text.size() || ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  throw Error(ErrorKind::io, "cannot write " + path + ". " + errno_name(error) +
                                 ". Make room, change the permissions of the run directory, or choose another with --run.dir.");
}

}  // namespace nsp
