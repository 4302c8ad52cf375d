#include "core/discover/host.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "core/device/byte_text.hpp"
#include "core/discover/control_group.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

std::string read_cpu_model(const fs::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || (line.rfind("model name", 0) != 0 && line.rfind("Model", 0) != 0)) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "";
}

// Bytes of a line "Key:   123 kB".
int64_t read_meminfo(const fs::path& root, const std::string& key) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) != 0) continue;
    std::istringstream value(line.substr(key.size() + 1));
    int64_t kilobytes = 0;
    if (value >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Hardware threads of one core have the same package and core number.
int count_physical_cores(const fs::path& root, const CoreSet& cores) {
  std::set<std::pair<int, int>> seen;
  for (std::size_t core = 0; core < cores.size(); ++core) {
    if (!cores[core]) continue;
    const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core)) / "topology";
    int package = 0, number = 0;
    if (std::ifstream(folder / "physical_package_id") >> package && std::ifstream(folder / "core_id") >> number) {
      seen.emplace(package, number);
    }
  }
  return static_cast<int>(seen.size());
}

int count_numa_nodes(const fs::path& root) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 4 && name.rfind("node", 0) == 0 && name.find_first_not_of("0123456789", 4) == std::string::npos) ++count;
  }
  return count;
}

}  // namespace

HostInfo read_host(const fs::path& root) {
  HostInfo host;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) host.name = name;
  host.cpu_model = read_cpu_model(root);
  host.cores = allowed_cores();
  host.physical_cores = count_physical_cores(root, host.cores);
  host.numa_nodes = count_numa_nodes(root);
  host.memory_total = read_meminfo(root, "MemTotal");
  host.memory_available = read_meminfo(root, "MemAvailable");
  const ControlGroupLimits limits = control_group_limits(root);
  host.cpu_limit = limits.cpus;
  if (limits.memory_limit > 0 && (host.memory_total == 0 || limits.memory_limit < host.memory_total)) {
    host.memory_total = limits.memory_limit;
    host.memory_available = host.memory_available == 0 ? limits.memory_available : std::min(host.memory_available, limits.memory_available);
    host.memory_limited = true;
  }
  return host;
}

std::string host_text(const HostInfo& host) {
  std::string text = "host " + host.name + "\n  processor: " + (host.cpu_model.empty() ? "not known" : host.cpu_model) +
                     "\n  cores this process may use: " + std::to_string(host.cores.count()) + " (" + core_text(host.cores) + ")";
  if (host.physical_cores > 0) text += ", " + std::to_string(host.physical_cores) + " physical";
  if (host.numa_nodes > 0)
    text += ", " + std::to_string(host.numa_nodes) + (host.numa_nodes == 1 ? " NUMA node" : " NUMA nodes") + " in the machine";
  if (host.cpu_limit > 0) {
    char limit[64];
    std::snprintf(limit, sizeof limit, ", limited to %.2f by a control group", host.cpu_limit);
    text += limit;
  }
  text += "\n  memory: " + byte_text(host.memory_available) + " available of " + byte_text(host.memory_total);
  if (host.memory_limited) text += " (the limit of a control group)";
  return text + "\n";
}

}  // namespace nsp
