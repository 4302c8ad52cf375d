// What would fit, for a plan that does not: tried out with the planner itself.
#pragma once

#include <string>
#include <vector>

#include "core/plan/planner.hpp"

namespace nsp {

// Another way to share a replica's work that is worth a try. The strategy chooses its degree by the memory budget.
struct Alternative {
  std::string how;  // "--plugins autosp"
  ParallelStrategy& strategy;
};

// The largest micro-batch that fits; else the smallest degree of an alternative that does, with the micro-batch as it is or 1;
// and how many ranks a CPU host could take. REQUIRES a plan that does not fit. The model's activations are planned anew.
std::string what_would_fit(const Planned& planned, const PlanQuestion& question, Transformer& model, const Policies& policies,
                           const std::vector<Alternative>& alternatives);

}  // namespace nsp
