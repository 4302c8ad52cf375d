#include "core/app/terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace nsp {
namespace {

namespace fs = std::filesystem;

std::string process_folder(int process) {
  return "/proc/" + std::to_string(process);
}

std::string output_of(int process) {
  std::error_code unreadable;
  return fs::read_symlink(process_folder(process) + "/fd/1", unreadable).string();
}

bool is_terminal(const std::string& output) {
  return output.starts_with("/dev/pts/") || output.starts_with("/dev/tty") || output == "/dev/console";
}

int parent_of(int process) {
  std::ifstream in(process_folder(process) + "/status");
  for (std::string word; in >> word;)
    if (word == "PPid:" && in >> word) return std::atoi(word.c_str());
  return 0;
}

// Whether the other end of a pipe can be there: a program that is only beside us, as in `nsp_app | tee`, does not hold it.
bool holds(int process, const std::string& pipe) {
  std::error_code error;
  for (fs::directory_iterator entry(process_folder(process) + "/fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (fs::read_symlink(entry->path(), unreadable).string() == pipe) return true;
  }
  return false;
}

// The terminal behind what a launched process writes, or "".
std::string behind_launcher(int process) {
  constexpr int deepest = 4;  // rank, perhaps a shell, proxy or daemon, launcher
  std::string output = output_of(process);
  if (!is_terminal(output) && !output.starts_with("pipe:")) return "";
  for (int level = 0; level < deepest; ++level) {
    const int parent = parent_of(process);
    if (parent <= 1 || (output.starts_with("pipe:") && !holds(parent, output))) return "";
    process = parent;
    output = output_of(process);
    if (is_terminal(output)) return output;
    if (!output.starts_with("pipe:")) return "";
  }
  return "";
}

}  // namespace

std::optional<Terminal> Terminal::find(bool launched) {
  if (!launched) return isatty(1) != 0 ? std::optional<Terminal>(Terminal(::dup(1))) : std::nullopt;
  const std::string path = behind_launcher(static_cast<int>(getpid()));
  if (path.empty()) return std::nullopt;
  return Terminal(::open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

Terminal::Terminal(Terminal&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Terminal::~Terminal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Terminal::width() const {
  winsize size{};
  if (descriptor_ >= 0 && ::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return default_width();
}

int default_width() {
  const char* columns = std::getenv("COLUMNS");
  const int value = columns != nullptr ? std::atoi(columns) : 0;
  return value > 0 ? value : 80;
}

}  // namespace nsp
