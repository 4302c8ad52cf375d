// Whether a plan fits into the memory of every device and every host of its topology. All ranks know the whole topology, so all
// get the same answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/discover/topology.hpp"
#include "core/plan/budget.hpp"
#include "core/plan/plan.hpp"

namespace nsp {

// One need against one room: a kind of device with what a position needs there, or a kind of host with all its ranks.
struct MemoryCheck {
  std::string where;  // "NVIDIA H100 SXM 80 GB, positions 0-1 (16 ranks)", "host node1 (8 ranks)"
  bool device = false;
  int64_t need = 0;  // bytes
  int64_t room = 0;  // bytes of the scarcest one; 0 = not known
  bool fits() const { return room <= 0 || need <= room; }
  double use() const { return room > 0 ? static_cast<double>(need) / static_cast<double>(room) : 0.0; }
};

// The memory of a CPU device is its host's, so such ranks count there alone. REQUIRES a rank for each of the plan, and each
// position in one kind.
std::vector<MemoryCheck> check_memory(const JobPlan& plan, const std::vector<PositionKind>& kinds, const Topology& topology);

// The check that comes closest to its room, or goes furthest beyond it; nullptr if no room is known.
const MemoryCheck* scarcest(const std::vector<MemoryCheck>& checks);
bool all_fit(const std::vector<MemoryCheck>& checks);
// A line for each check; the scarcest is named.
std::string fit_text(const std::vector<MemoryCheck>& checks);
// Error(does_not_fit) names need, room and where, and ends with the advice.
void require_fit(const std::vector<MemoryCheck>& checks, const std::string& advice);

// Bytes that a rank may use where memory is scarcest: device memory, or a CPU rank's share of its host's. 0 = none is known.
int64_t scarcest_memory(const Topology& topology);

}  // namespace nsp
