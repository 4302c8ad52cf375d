#include "core/plan/budget.hpp"

#include <cstdio>
#include <map>
#include <sstream>

#include "core/device/byte_text.hpp"

namespace nsp {
namespace {

// Blocks are alike, so the table shows them as one line.
std::string group_of(const std::string& segment) {
  return segment.rfind("blocks.", 0) == 0 ? "blocks" : segment;
}

}  // namespace

int64_t MemoryTable::device_bytes() const {
  int64_t n = 0;
  for (const MemoryLine& l : lines)
    if (l.tier == "device") n += l.bytes;
  return n;
}

int64_t MemoryTable::host_bytes() const {
  int64_t n = 0;
  for (const MemoryLine& l : lines)
    if (l.tier != "device") n += l.bytes;
  return n;
}

std::string MemoryTable::text() const {
  std::ostringstream out;
  char row[160];
  std::snprintf(row, sizeof row, "  %-28s %-14s %-8s %12s\n", "memory of one rank", "segment", "tier", "size");
  out << row;
  for (const MemoryLine& l : lines) {
    std::snprintf(row, sizeof row, "  %-28s %-14s %-8s %12s\n", l.what.c_str(), l.segment.c_str(), l.tier.c_str(),
                  byte_text(l.bytes).c_str());
    out << row;
  }
  std::snprintf(row, sizeof row, "  %-28s %-14s %-8s %12s\n", "total", "", "device", byte_text(device_bytes()).c_str());
  out << row;
  std::snprintf(row, sizeof row, "  %-28s %-14s %-8s %12s\n", "total", "", "host", byte_text(host_bytes()).c_str());
  out << row;
  return out.str();
}

void add_states(MemoryTable& table, const ParamTable& params, const std::vector<StateDecl>& decls, const std::vector<Range>& owned,
                const LocCache& cache) {
  for (const StateDecl& decl : decls) {
    std::map<std::string, int64_t> by_group;
    std::vector<std::string> order;
    std::map<std::string, std::string> tier;
    for (std::size_t s = 0; s < params.segments().size(); ++s) {
      const Segment& segment = params.segments()[s];
      const std::string group = group_of(segment.name);
      if (by_group.count(group) == 0) order.push_back(group);
      const int64_t elements = decl.extent == Extent::full ? segment.storage : owned[s].size();
      by_group[group] += elements * static_cast<int64_t>(size_of(decl.dtype));
      tier[group] = cache.place(decl, static_cast<int>(s));
    }
    for (const std::string& group : order) table.lines.push_back({decl.kind, group, tier[group], by_group[group]});
  }
}

void add_activations(MemoryTable& table, const ActivationPlanner& planner) {
  table.lines.push_back({"activations", "", "device", planner.kept_bytes()});
  table.lines.push_back({"scratch (high-water mark)", "", "device", planner.scratch_bytes()});
}

void check_fits(const MemoryTable& table, const MemoryRoom& room, const std::string& advice) {
  const int64_t device = table.device_bytes();
  if (room.device_free > 0 && device > room.device_free)
    throw Error(ErrorKind::does_not_fit, "the plan needs " + byte_text(device) + " of device memory a rank, and " +
                                             byte_text(room.device_free) + " is free. " + advice);
  const int64_t host = (table.host_bytes() + (room.device_is_host ? device : 0)) * room.ranks_on_host;
  if (room.host_free > 0 && host > room.host_free)
    throw Error(ErrorKind::does_not_fit, "the plan needs " + byte_text(host) + " of host memory for " + std::to_string(room.ranks_on_host) +
                                             " ranks on this host, and " + byte_text(room.host_free) + " is free. " + advice);
}

}  // namespace nsp
