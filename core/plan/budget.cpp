#include "core/plan/budget.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/device/byte_text.hpp"

namespace nsp {
namespace {

// Blocks are alike, so the table shows them as one line.
std::string group_of(const std::string& segment) {
  return segment.rfind("blocks.", 0) == 0 ? "blocks" : segment;
}

std::string row_text(const std::string& what, const std::string& segment, const std::string& tier, const std::vector<std::string>& sizes) {
  char row[160];
  std::snprintf(row, sizeof row, "  %-28s %-10s %-7s", what.c_str(), segment.c_str(), tier.c_str());
  std::string text = row;
  for (const std::string& size : sizes) {
    std::snprintf(row, sizeof row, " %16s", size.c_str());
    text += row;
  }
  return text + "\n";
}

template <class Number>
std::vector<std::string> sizes_of(const std::vector<PositionKind>& kinds, Number number) {
  std::vector<std::string> sizes;
  for (const PositionKind& kind : kinds) sizes.push_back(byte_text(number(kind.memory)));
  return sizes;
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

void add_kernels(MemoryTable& table, int64_t bytes) {
  table.lines.push_back({"kernels, at most", "", "host", bytes});
}

std::string position_text(const std::vector<int>& positions) {
  std::string text;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < positions.size() && positions[last + 1] == positions[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(positions[i]);
    if (last > i) text += '-' + std::to_string(positions[last]);
    i = last;
  }
  return (positions.size() == 1 ? "position " : "positions ") + text;
}

std::string memory_text(const std::vector<PositionKind>& all) {
  constexpr std::size_t most_shown = 3;
  const bool alone = all.size() == 1;
  const std::vector<PositionKind> kinds(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most_shown)));
  std::vector<std::string> names;
  for (const PositionKind& kind : kinds) names.push_back(alone ? "size" : position_text(kind.positions));
  std::string text = row_text(alone ? "memory of one rank" : "memory of a rank at", "segment", "tier", names);
  for (std::size_t i = 0; i < kinds.front().memory.lines.size(); ++i) {
    const MemoryLine& line = kinds.front().memory.lines[i];
    text += row_text(line.what, line.segment, line.tier, sizes_of(kinds, [&](const MemoryTable& t) { return t.lines.at(i).bytes; }));
  }
  text += row_text("total", "", "device", sizes_of(kinds, [](const MemoryTable& t) { return t.device_bytes(); }));
  text += row_text("total", "", "host", sizes_of(kinds, [](const MemoryTable& t) { return t.host_bytes(); }));
  if (all.size() > kinds.size())
    text += "  " + std::to_string(all.size() - kinds.size()) + " more kinds of position need between " +
            byte_text(all.back().memory.bytes()) + " and " + byte_text(all[kinds.size()].memory.bytes()) + " in all\n";
  return text;
}

}  // namespace nsp
