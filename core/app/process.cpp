#include "core/app/process.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace nsp {

void tune_process() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
}

bool prints_to_terminal(bool launched) {
  if (isatty(1) == 0) return false;
  if (!launched) return true;
  std::error_code unreadable;
  const std::string output = std::filesystem::read_symlink("/proc/" + std::to_string(getppid()) + "/fd/1", unreadable).string();
  return output.rfind("/dev/pts/", 0) == 0 || output.rfind("/dev/tty", 0) == 0;
}

}  // namespace nsp
