#include "core/app/console_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace nsp {
namespace {

// EIO is what a terminal says that was closed.
bool reader_is_gone(int descriptor, int error) {
  struct stat file {};
  return error == EPIPE || (error == EIO && ::fstat(descriptor, &file) == 0 && S_ISCHR(file.st_mode));
}

}  // namespace

void ConsoleLog::outlive_readers() {
  std::signal(SIGPIPE, SIG_IGN);
  outlives_readers_ = true;
}

void ConsoleLog::flush(std::FILE* stream) {
  const bool failed = std::fflush(stream) != 0 || std::ferror(stream) != 0;
  if (!failed || !outlives_readers_ || !reader_is_gone(::fileno(stream), errno)) return;
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;  // each later line fails by itself
  ::dup2(null, ::fileno(stream));
  ::close(null);
  std::clearerr(stream);
}

void ConsoleLog::info(const std::string& line) {
  if (!prints_) return;
  erase();
  std::fprintf(stdout, "%s\n", line.c_str());
  draw();
}

void ConsoleLog::warning(const std::string& line) {
  if (!prints_) return;
  erase();
  flush(stdout);
  std::fprintf(stderr, "nsp_app: warning: %s\n", line.c_str());
  flush(stderr);
  draw();
}

void ConsoleLog::use_terminal(std::optional<Terminal> terminal) {
  terminal_ = terminal ? std::make_unique<Terminal>(std::move(*terminal)) : nullptr;
}

// The cursor returns to the beginning: what others write to this terminal (other ranks, a watchdog) does not hang on to the line.
void ConsoleLog::draw() {
  if (!status_.empty()) std::fprintf(stdout, "%s\r", status_.c_str());
  flush(stdout);
}

// With spaces, which every terminal understands. A terminal that became narrower meanwhile keeps what it has wrapped.
void ConsoleLog::erase() {
  if (status_.empty()) return;
  const auto columns = std::min(status_.size(), static_cast<std::size_t>(std::max(1, width() - 1)));
  std::fprintf(stdout, "\r%s\r", std::string(columns, ' ').c_str());
}

void ConsoleLog::show(const std::string& text) {
  if (!prints_) return;
  const std::size_t before = std::min(status_.size(), static_cast<std::size_t>(std::max(1, width() - 1)));
  const std::string rest(before > text.size() ? before - text.size() : 0, ' ');
  std::fprintf(stdout, "\r%s%s\r", text.c_str(), rest.c_str());
  flush(stdout);
  status_ = text;
}

void ConsoleLog::end() {
  if (std::exchange(status_, "").empty()) return;
  std::fputs("\n", stdout);
  flush(stdout);
}

}  // namespace nsp
