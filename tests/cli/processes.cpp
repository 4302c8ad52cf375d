#include "tests/cli/processes.hpp"

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "tests/cli/command.hpp"

namespace nsp::test {
namespace {

struct Process {
  pid_t pid = 0, parent = 0;
};

std::vector<Process> all_processes() {
  std::vector<Process> out;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    // pid (name) state parent ...; the name may hold anything, so what follows its last bracket counts.
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t at = stat.rfind(')');
    if (at == std::string::npos) continue;
    std::istringstream rest(stat.substr(at + 1));
    char state = 0;
    Process process{pid, 0};
    rest >> state >> process.parent;
    if (state != 'Z') out.push_back(process);
  }
  closedir(proc);
  return out;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  const std::vector<Process> all = all_processes();
  std::vector<pid_t> found, generation = {root};
  while (!generation.empty()) {
    std::vector<pid_t> next;
    for (const Process& process : all)
      for (pid_t parent : generation)
        if (process.parent == parent) next.push_back(process.pid);
    found.insert(found.end(), next.begin(), next.end());
    generation = next;
  }
  return found;
}

void kill_tree(pid_t root) {
  const std::vector<pid_t> below = descendants(root);
  ::kill(root, SIGKILL);
  for (pid_t pid : below) ::kill(pid, SIGKILL);
}

void wait_until_gone(const std::vector<pid_t>& processes) {
  for (int attempt = 0; attempt < 60000; ++attempt) {
    const std::vector<Process> living = all_processes();
    const bool gone = std::none_of(living.begin(), living.end(), [&](const Process& p) {
      return std::find(processes.begin(), processes.end(), p.pid) != processes.end();
    });
    if (gone) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace nsp::test
