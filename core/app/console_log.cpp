#include "core/app/console_log.hpp"

#include <cstdio>

namespace nsp {

void ConsoleLog::info(const std::string& line) {
  if (!prints_) return;
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

void ConsoleLog::warning(const std::string& line) {
  if (prints_) std::fprintf(stderr, "nsp_app: warning: %s\n", line.c_str());
}

}  // namespace nsp
