#include "core/discover/described_topology.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "nsp/error.hpp"
#include "nsp/options.hpp"

namespace nsp {
namespace {

constexpr int most_ranks = 1 << 20;
constexpr int accelerators_per_host = 8;

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
  throw Error(ErrorKind::usage, "--devices '" + item + "' cannot be read. " + why +
                                    " Write KIND:COUNT, several separated by commas, such as h100:32,a6000:32.");
}

DeviceCount parse_item(const std::string& item) {
  const std::size_t colon = item.find(':');
  if (colon == std::string::npos) refuse(item, "It has no colon and no count.");
  DeviceCount out{find_device_kind(item.substr(0, colon)), 0};
  int64_t count = 0;
  try {
    count = parse::integer(item.substr(colon + 1));
  } catch (const Error&) {
    refuse(item, "The count is not a whole number.");
  }
  if (count < 1 || count > most_ranks) refuse(item, "The count is from 1 to " + std::to_string(most_ranks) + ".");
  out.count = static_cast<int>(count);
  return out;
}

RankInfo rank_on(const DeviceKind& kind, const MachineDescription& machine, const HostInfo& here, int per_host) {
  RankInfo info;
  info.device_name = kind.name;
  info.backend = kind.backend;
  info.peak_gflops = kind.peak_gflops(machine.dtype);
  info.device_kind = kind.is_cpu() ? "cpu" : "cuda";
  info.host_memory_total = info.host_memory_available = machine.host_memory;
  if (!kind.is_cpu()) {
    info.memory_total = info.memory_free = machine.memory > 0 ? machine.memory : kind.memory_bytes();
    return info;
  }
  if (!here.cpu_model.empty()) info.device_name = here.cpu_model;
  info.backend = machine.cpu_backend;
  info.cores = here.cores;
  info.threads = machine.threads > 0 ? machine.threads : std::max(1, static_cast<int>(here.cores.count()) / per_host);
  info.device_name += " (" + std::to_string(info.threads) + (info.threads == 1 ? " thread)" : " threads)");  // as the CPU backend names it
  if (machine.memory > 0)
    info.host_memory_available = machine.memory * per_host;
  else if (machine.host_memory == 0)
    info.host_memory_available = here.memory_total;
  info.host_memory_total = info.memory_total = info.memory_free = info.host_memory_available;
  return info;
}

}  // namespace

std::vector<DeviceCount> parse_devices(const std::string& text) {
  std::vector<DeviceCount> out;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) out.push_back(parse_item(item));
  if (out.empty() || text.back() == ',') refuse(text, "Nothing stands behind a comma, or nothing at all.");
  int64_t ranks = 0;
  for (const DeviceCount& entry : out) ranks += entry.count;
  if (ranks > most_ranks) refuse(text, "It has more than " + std::to_string(most_ranks) + " devices.");
  return out;
}

Topology describe_topology(const std::vector<DeviceCount>& devices, const MachineDescription& machine, const HostInfo& here) {
  Topology topology;
  topology.described = true;
  std::map<std::string, int> hosts;  // of each kind, so far
  for (const DeviceCount& entry : devices) {
    const int cores = std::max(1, static_cast<int>(here.cores.count()));
    const int per_host = machine.per_host > 0 ? machine.per_host : entry.kind.is_cpu() ? cores : accelerators_per_host;
    RankInfo info = rank_on(entry.kind, machine, here, std::min(per_host, entry.count));
    for (int i = 0; i < entry.count; ++i) {
      if (i % per_host == 0) info.host = entry.kind.key + "-" + std::to_string(++hosts[entry.kind.key]);
      info.local_rank = i % per_host;
      topology.ranks.push_back(info);
    }
  }
  return topology;
}

}  // namespace nsp
