// What the ranks of the replicas send each other in a step.
#pragma once

#include <cstdint>

#include "core/model/spec.hpp"
#include "core/plan/plan.hpp"

namespace nsp {

// Bytes, all replicas together: gradients to owners, weights back, and the strategy's exchanges around attention.
double replica_traffic(const JobPlan& plan, const ModelSpec& spec, const ParallelStrategy& strategy, int64_t parameters);

}  // namespace nsp
