// The parallelism of a model that fits one rank: every rank is a whole replica.
#include "nsp/plugin.hpp"

#include "nsp/parallel_strategy.hpp"

namespace nsp {
namespace {

class Dp : public ParallelStrategy {
 public:
  explicit Dp(const PluginContext&) {}

  ParallelPlan propose(const ParallelQuestion& question) override {
    if (question.ranks > question.global_batch) {
      throw Error(ErrorKind::usage, std::to_string(question.ranks) + " replicas cannot share train.global_batch " +
                                        std::to_string(question.global_batch) +
                                        ". Under dp every rank is a replica, and each needs at least one sequence a step. Raise "
                                        "train.global_batch to " +
                                        std::to_string(question.ranks) +
                                        " or more, start fewer ranks, or let several ranks share a sequence with --plugins autosp.");
    }
    ParallelPlan plan;
    plan.token_cuts = {0, question.context};
    plan.reason = "every rank is a replica";
    return plan;
  }
  void open(const ParallelContext&) override {}
  int64_t staging_bytes(const ParallelPlan&, const ParallelQuestion&, int64_t) const override { return 0; }
  bool splits_heads() const override { return false; }
  HeadShare head_share(const ParallelPlan&, int, int64_t heads, int64_t kv_heads) const override { return {0, heads, 0, kv_heads}; }
  void sequence_to_heads(std::span<const HeadExchange>) override { refuse(); }
  void heads_to_sequence(std::span<const HeadExchange>) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorKind::internal, "dp splits no heads, so it exchanges none. This is a bug in nsp."); }
};

}  // namespace
}  // namespace nsp

NSP_BUILTIN_PLUGIN(nsp_builtin_parallel_dp, "parallel", "dp", "0.1.0", "one rank a replica: data parallelism alone", nsp::ParallelStrategy,
                   nsp::Dp, nsp::no_options);
