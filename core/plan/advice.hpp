// What would fit, for a plan that does not: tried out with the planner itself.
#pragma once

#include <optional>
#include <string>

#include "core/plan/planner.hpp"

namespace nsp {

// Sequence parallelism that the strategy may choose the degree of by the memory budget.
struct Alternative {
  std::string how;  // the options up to the degree: "--plugins autosp --autosp.degree"
  ParallelStrategy& strategy;
};

// Options that, added to the command line, make it fit: a smaller micro-batch, bf16, another degree, each with the largest micro-batch
// that fits if the one given does not; both together only if neither fits alone. Then how many ranks a CPU host could take.
// REQUIRES a plan that does not fit. The model's activations are planned anew.
std::string what_would_fit(const Planned& planned, const PlanQuestion& question, Transformer& model, const Policies& policies,
                           const std::optional<Alternative>& alternative);

}  // namespace nsp
