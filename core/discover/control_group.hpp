// Limits that a container or a batch system has put on this process by Linux control groups, versions 1 and 2.
#pragma once

#include <cstdint>
#include <filesystem>

namespace nsp {

struct ControlGroupLimits {
  int64_t memory_limit = 0;      // bytes; 0 = none
  int64_t memory_available = 0;  // bytes below the limit that are not used (page cache that can be dropped counts as unused)
  double cpus = 0;               // processor time per time; 0 = no limit
};

// The tightest limit of the process's group and of all groups above it. root: "/", or a folder that holds proc/ and sys/.
// What cannot be read is no limit.
ControlGroupLimits control_group_limits(const std::filesystem::path& root = "/");

}  // namespace nsp
