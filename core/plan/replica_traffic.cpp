#include "core/plan/replica_traffic.hpp"

namespace nsp {

double replica_traffic(const JobPlan& plan, const ModelSpec& spec, const ParallelStrategy& strategy, int64_t parameters) {
  if (plan.replica_size <= 1) return 0;
  std::vector<HeadShare> shares;
  int64_t all = 0;  // heads of q, k, v over all ranks, replicated ones as often as they are held, and of the output
  const auto held = [](const HeadShare& share) { return 2 * share.query_heads() + 2 * share.kv_heads(); };
  for (int i = 0; i < plan.replica_size; ++i) {
    shares.push_back(strategy.head_share(plan.parallel, i, spec.heads, spec.kv_heads));
    all += held(shares.back());
  }
  // A token's q, k, v go to the other ranks that hold the heads, and their outputs come back; in backward the same the other way.
  double per_sequence = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const int64_t tokens = plan.parallel.token_cuts[i + 1] - plan.parallel.token_cuts[i];
    per_sequence += static_cast<double>(tokens * (all - held(shares[i])));
  }
  const double bytes = static_cast<double>(size_of(DType::f32));
  const double exchanges = 2.0 * static_cast<double>(spec.layers * spec.head_dim) * per_sequence * bytes;
  const double owners = 2.0 * (plan.replica_size - 1) * bytes * static_cast<double>(parameters) * plan.replicas;
  return owners + static_cast<double>(plan.global_batch) * exchanges;
}

}  // namespace nsp
