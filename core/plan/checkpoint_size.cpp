#include "core/plan/checkpoint_size.hpp"

#include <algorithm>

#include "core/tensor/core_states.hpp"

namespace nsp {

CheckpointSize checkpoint_size(const JobPlan& plan, const ParamTable& table, const std::vector<StateDecl>& states, bool differ) {
  int64_t own_bytes = 0, part_bytes = 0;  // of an element that is written by its owner in each replica; by one rank of the job
  for (std::size_t s = 0; s < states.size(); ++s) {
    if (!states[s].checkpointed) continue;
    const auto bytes = static_cast<int64_t>(size_of(states[s].dtype));
    if (differ) own_bytes += bytes;
    if (!differ || states[s].kind == weights_kind) part_bytes += bytes;
  }
  CheckpointSize size;
  for (int p = 0; p < plan.replica_size; ++p) {
    const std::vector<Range> owned = plan.owned(table, p);
    for (int64_t m = 0; m < plan.replicas; ++m) {
      int64_t bytes = 0;
      for (const Range& range : owned) {
        const int64_t n = range.size();
        bytes += n * own_bytes + (n * (m + 1) / plan.replicas - n * m / plan.replicas) * part_bytes;
      }
      size.total += bytes;
      size.largest_rank = std::max(size.largest_rank, bytes);
    }
  }
  return size;
}

}  // namespace nsp
