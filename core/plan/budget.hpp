// Bytes that a rank needs, by what for, and whether they fit: printed and checked before the first allocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/tensor/activations.hpp"
#include "nsp/memory.hpp"

namespace nsp {

struct MemoryLine {
  std::string what;     // "weights", "adamw.m", "activations", "scratch", "staging: data"
  std::string segment;  // "embedding", "blocks (4)", "head", or "" for all
  std::string tier;     // "device", "pinned"
  int64_t bytes = 0;
};

struct MemoryTable {
  std::vector<MemoryLine> lines;
  int64_t device_bytes() const;
  int64_t host_bytes() const;
  std::string text() const;  // the table, with totals, in MiB
};

// Adds a line for every state and group of segments.
void add_states(MemoryTable& table, const ParamTable& params, const std::vector<StateDecl>& decls, const std::vector<Range>& owned,
                const LocCache& cache);
void add_activations(MemoryTable& table, const ActivationPlanner& planner);

// What the ranks of one host need together against what it has. Throws Error(does_not_fit) that names need, room and what would fit.
// device_is_host: device memory is host memory (a CPU device), so both needs add up.
struct MemoryRoom {
  int64_t device_free = 0;  // bytes for one rank; 0 = not known
  int64_t host_free = 0;    // bytes for all ranks of the host; 0 = not known
  int ranks_on_host = 1;
  bool device_is_host = true;
};
void check_fits(const MemoryTable& table, const MemoryRoom& room, const std::string& advice);

}  // namespace nsp
