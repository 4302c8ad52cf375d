// The machine that this process runs on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/discover/core_set.hpp"

namespace nsp {

struct HostInfo {
  std::string name;              // host name
  std::string cpu_model;         // "AMD EPYC 9654"
  CoreSet cores;                 // that this process may use
  int physical_cores = 0;        // behind those; fewer than cores where cores are hardware threads; 0 = not known
  int numa_nodes = 0;            // of the machine; 0 = not known
  double cpu_limit = 0;          // processor time per time, by control groups; 0 = none
  int64_t memory_total = 0;      // bytes: of the machine, or the control group's limit if that is less
  int64_t memory_available = 0;  // bytes that can be had now, within the same limits
  bool memory_limited = false;   // memory_total is a control group's limit
};

// root: "/", or a folder that holds proc/ and sys/. Facts that cannot be read are 0 or empty; cores is never empty.
HostInfo read_host(const std::filesystem::path& root = "/");

// Lines for `nsp_app info`.
std::string host_text(const HostInfo& host);

}  // namespace nsp
