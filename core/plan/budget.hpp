// Bytes that a rank needs, by what for: printed before the first allocation.
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
  int64_t bytes() const { return device_bytes() + host_bytes(); }
};

// Adds a line for every state and group of segments.
void add_states(MemoryTable& table, const ParamTable& params, const std::vector<StateDecl>& decls, const std::vector<Range>& owned,
                const LocCache& cache);
void add_activations(MemoryTable& table, const ActivationPlanner& planner);
void add_kernels(MemoryTable& table, int64_t bytes);  // core/plan/kernel_memory.hpp

// Positions of a replica that need the same memory, to the figures that are printed.
struct PositionKind {
  std::vector<int> positions;  // ascending
  MemoryTable memory;          // of the one that needs most
};

// "position 0", "positions 0-2".
std::string position_text(const std::vector<int>& positions);

// Tables of one shape side by side, with totals. The kind that needs most comes first; no more than three are shown, and what
// the others need is said below. REQUIRES at least one kind, all with the same lines.
std::string memory_text(const std::vector<PositionKind>& kinds);

}  // namespace nsp
