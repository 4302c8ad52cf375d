#include "core/plan/fit.hpp"

#include <algorithm>
#include <map>

#include "core/device/byte_text.hpp"

namespace nsp {
namespace {

std::string ranks_text(std::size_t n) {
  return '(' + std::to_string(n) + (n == 1 ? " rank)" : " ranks)");
}

bool on_host(const RankInfo& info) {
  return info.device_kind == "cpu";
}

// Devices of one name whose ranks need the same.
struct DeviceGroup {
  std::size_t ranks = 0, kind = 0;
  int64_t room = 0;
};

// Hosts whose ranks together need the same.
struct HostGroup {
  std::string first, last;
  std::size_t hosts = 0, ranks = 0;
  int64_t need = 0, room = 0;
};

void keep_least(int64_t& room, int64_t other, bool first) {
  room = first ? other : std::min(room, other);
}

}  // namespace

std::vector<MemoryCheck> check_memory(const JobPlan& plan, const std::vector<PositionKind>& kinds, const Topology& topology) {
  NSP_REQUIRE(static_cast<int>(topology.ranks.size()) == plan.ranks, "the topology has a rank for each of the plan");
  std::vector<std::size_t> kind_of(static_cast<std::size_t>(plan.replica_size));
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (int position : kinds[k].positions) kind_of.at(static_cast<std::size_t>(position)) = k;

  std::map<std::pair<std::string, std::size_t>, DeviceGroup> devices;
  std::map<std::pair<int64_t, std::string>, HostGroup> hosts;  // by need and by what the first rank runs on
  std::vector<std::pair<std::string, std::size_t>> device_order;
  std::vector<std::pair<int64_t, std::string>> host_order;
  for (const HostRanks& host : topology.hosts()) {
    int64_t need = 0, room = 0;
    for (int rank : host.ranks) {
      const RankInfo& info = topology.ranks[static_cast<std::size_t>(rank)];
      const std::size_t kind = kind_of[static_cast<std::size_t>(plan.position_of(rank))];
      const MemoryTable& memory = kinds[kind].memory;
      need += memory.host_bytes() + (on_host(info) ? memory.device_bytes() : 0);
      keep_least(room, info.host_memory_available, rank == host.ranks.front());
      if (on_host(info)) continue;
      const std::pair key(info.device_name, kind);
      DeviceGroup& group = devices[key];
      if (group.ranks == 0) device_order.push_back(key);
      keep_least(group.room, info.memory_free, group.ranks == 0);
      group.kind = kind;
      ++group.ranks;
    }
    const std::pair key(need, topology.ranks[static_cast<std::size_t>(host.ranks.front())].device_name);
    HostGroup& group = hosts[key];
    if (group.hosts == 0) {
      host_order.push_back(key);
      group.first = host.name;
    }
    keep_least(group.room, room, group.hosts == 0);
    group.last = host.name;
    group.need = need;
    ++group.hosts;
    group.ranks += host.ranks.size();
  }

  std::vector<MemoryCheck> checks;
  for (const auto& key : device_order) {
    const DeviceGroup& group = devices[key];
    const std::string position = kinds.size() > 1 ? ", " + position_text(kinds[group.kind].positions) : "";
    checks.push_back({key.first + position + " " + ranks_text(group.ranks), true, kinds[group.kind].memory.device_bytes(), group.room});
  }
  for (const auto& key : host_order) {
    const HostGroup& group = hosts[key];
    const std::string name = group.hosts == 1
                                 ? "host " + group.first
                                 : "each of " + std::to_string(group.hosts) + " hosts from " + group.first + " to " + group.last;
    checks.push_back({name + " " + ranks_text(group.ranks / group.hosts), false, group.need, group.room});
  }
  return checks;
}

const MemoryCheck* scarcest(const std::vector<MemoryCheck>& checks) {
  const MemoryCheck* most = nullptr;
  for (const MemoryCheck& check : checks)
    if (check.room > 0 && (most == nullptr || check.use() > most->use())) most = &check;
  return most;
}

bool all_fit(const std::vector<MemoryCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(), [](const MemoryCheck& check) { return check.fits(); });
}

std::string fit_text(const std::vector<MemoryCheck>& checks) {
  const MemoryCheck* most = scarcest(checks);
  std::string text = "memory needed and there\n";
  for (const MemoryCheck& check : checks) {
    text += "  " + std::string(check.device ? "device: " : "host:   ") + check.where + ": " + byte_text(check.need);
    if (check.room <= 0)
      text += ", room not known (--host-memory)";
    else
      text += " of " + byte_text(check.room) + (check.fits() ? "" : ", DOES NOT FIT");
    text += std::string(&check == most ? "  <- scarcest" : "") + "\n";
  }
  return text;
}

void require_fit(const std::vector<MemoryCheck>& checks, const std::string& advice) {
  const MemoryCheck* most = scarcest(checks);
  if (most == nullptr || most->fits()) return;
  const std::string tier = most->device ? "device" : "host";
  throw Error(ErrorKind::does_not_fit, "the plan does not fit into " + tier + " memory. It needs " + byte_text(most->need) + " on " +
                                           most->where + ", and " + byte_text(most->room) + " is free there. " + advice);
}

int64_t scarcest_memory(const Topology& topology) {
  int64_t least = 0;
  const auto keep = [&](int64_t bytes) {
    if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
  };
  for (const HostRanks& host : topology.hosts())
    for (int rank : host.ranks) {
      const RankInfo& info = topology.ranks[static_cast<std::size_t>(rank)];
      keep(on_host(info) ? info.host_memory_available / static_cast<int64_t>(host.ranks.size()) : info.memory_free);
    }
  return least;
}

}  // namespace nsp
