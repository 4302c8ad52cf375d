#include "core/discover/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace nsp {
namespace {

namespace fs = std::filesystem;

// nullopt: no such file, or a word ("max") instead of a number.
std::optional<int64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// The value of a line "key value".
int64_t read_entry(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  int64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

struct Names {
  const char *limit, *usage, *inactive;
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

void tighten_memory(const fs::path& group, const Names& names, ControlGroupLimits& limits) {
  const std::optional<int64_t> limit = read_number(group / names.limit);
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // version 1 writes the largest whole number of pages
  if (!limit || *limit <= 0 || *limit >= kNoLimit) return;
  const int64_t usage = read_number(group / names.usage).value_or(0) - read_entry(group / "memory.stat", names.inactive);
  const int64_t available = std::clamp<int64_t>(*limit - usage, 0, *limit);
  limits.memory_available = limits.memory_limit == 0 ? available : std::min(limits.memory_available, available);
  limits.memory_limit = limits.memory_limit == 0 ? *limit : std::min(limits.memory_limit, *limit);
}

void tighten_cpus(std::optional<int64_t> quota, std::optional<int64_t> period, ControlGroupLimits& limits) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  limits.cpus = limits.cpus == 0 ? cpus : std::min(limits.cpus, cpus);
}

// The group and all above it up to the mount point. Inside a container the path may not exist below the mount, whose top is
// then the container's own group: that level is always visited.
std::vector<fs::path> levels(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> all;
  for (fs::path p = fs::path(path).relative_path(); !p.empty(); p = p.parent_path()) all.push_back(mount / p);
  all.push_back(mount);
  return all;
}

bool names_controller(const std::string& list, const std::string& controller) {
  std::stringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    if (item == controller) return true;
  }
  return false;
}

}  // namespace

ControlGroupLimits control_group_limits(const fs::path& root) {
  ControlGroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // Lines "number:controllers:path"; version 2 has number 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const fs::path& mount : {mounts, mounts / "unified"}) {
        for (const fs::path& group : levels(mount, path)) {
          tighten_memory(group, kVersion2, limits);
          std::ifstream cpu_max(group / "cpu.max");
          int64_t quota = 0, period = 0;
          if (cpu_max >> quota >> period) tighten_cpus(quota, period, limits);
        }
      }
    } else if (names_controller(controllers, "memory")) {
      for (const fs::path& group : levels(mounts / "memory", path)) tighten_memory(group, kVersion1, limits);
    } else if (names_controller(controllers, "cpu")) {
      for (const fs::path& group : levels(mounts / "cpu", path)) {
        tighten_cpus(read_number(group / "cpu.cfs_quota_us"), read_number(group / "cpu.cfs_period_us"), limits);
      }
    }
  }
  return limits;
}

}  // namespace nsp
