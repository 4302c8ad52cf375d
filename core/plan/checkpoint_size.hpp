// Bytes of tensors that a checkpoint of a plan holds, as the checkpointer will write them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/tensor/param_table.hpp"
#include "nsp/types.hpp"

namespace nsp {

struct CheckpointSize {
  int64_t total = 0;
  int64_t largest_rank = 0;  // what the rank that writes most writes
};

// differ: replicas hold different values, so each writes its own states, and the mean of the weights comes on top.
CheckpointSize checkpoint_size(const JobPlan& plan, const ParamTable& table, const std::vector<StateDecl>& states, bool differ);

}  // namespace nsp
