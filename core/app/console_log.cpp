#include "core/app/console_log.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace nsp {

void ConsoleLog::info(const std::string& line) {
  if (!prints_) return;
  erase();
  std::fprintf(stdout, "%s\n", line.c_str());
  draw();
}

void ConsoleLog::warning(const std::string& line) {
  if (!prints_) return;
  erase();
  std::fflush(stdout);
  std::fprintf(stderr, "nsp_app: warning: %s\n", line.c_str());
  std::fflush(stderr);
  draw();
}

void ConsoleLog::use_terminal(std::optional<Terminal> terminal) {
  terminal_ = terminal ? std::make_unique<Terminal>(std::move(*terminal)) : nullptr;
}

// The cursor returns to the beginning: what others write to this terminal (other ranks, a watchdog) does not hang on to the line.
void ConsoleLog::draw() {
  if (!status_.empty()) std::fprintf(stdout, "%s\r", status_.c_str());
  std::fflush(stdout);
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
  std::fflush(stdout);
  status_ = text;
}

void ConsoleLog::end() {
  if (std::exchange(status_, "").empty()) return;
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

}  // namespace nsp
