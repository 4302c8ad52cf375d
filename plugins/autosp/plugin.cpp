// Sequence parallelism by exchanging heads: Jacobs et al., "DeepSpeed Ulysses", arXiv 2309.14509.
//
// Everything but attention works on a shard of the tokens. Around attention one all_to_all turns shards of the sequence into
// shards of the heads, so that every rank attends over whole sequences with a part of the heads, and another one turns back.
// Heads and tokens that do not divide evenly are cut near-equally; key/value heads are replicated where there are more ranks.
#include "nsp/plugin.hpp"

#include <optional>

#include "nsp/parallel_strategy.hpp"
#include "plugins/autosp/degree.hpp"
#include "plugins/autosp/head_exchange.hpp"
#include "plugins/autosp/head_map.hpp"

namespace nsp {
namespace {

// 0 = auto.
int read_degree(const Options& options) {
  const std::string text = options.text("degree");
  if (text == "auto") return 0;
  int64_t degree = 0;
  try {
    degree = parse::integer(text);
  } catch (const Error&) {
    degree = 0;
  }
  if (degree < 1 || degree > 1'000'000)
    throw Error(ErrorKind::usage, "autosp.degree '" + text + "' is not a degree. It is the number of ranks that share each sequence. Set " +
                                      "--autosp.degree to auto or to a whole number from 1.");
  return static_cast<int>(degree);
}

int degree_of(const ParallelPlan& plan) {
  return plan.replica_size();
}

class Autosp : public ParallelStrategy {
 public:
  explicit Autosp(const PluginContext& context) : given_degree_(read_degree(context.options)) {}

  ParallelPlan propose(const ParallelQuestion& question) override {
    const ChosenDegree chosen = given_degree_ > 0 ? check_degree(question, given_degree_) : choose_degree(question);
    ParallelPlan plan;
    plan.axes = {{"sequence", chosen.degree}};
    plan.token_cuts = near_equal_cuts(question.context, chosen.degree);
    plan.reason = chosen.reason;
    degree_ = chosen.degree;
    return plan;
  }

  void open(const ParallelContext& context) override {
    degree_ = degree_of(context.plan);
    exchanger_.emplace(context);
  }

  int64_t staging_bytes(const ParallelPlan& plan, const ParallelQuestion& question, int64_t micro_batch) const override {
    return exchange_sizes(plan, question.heads, question.kv_heads, question.head_dim, micro_batch).bytes(question.dtype);
  }

  bool splits_heads() const override { return degree_ > 1; }

  HeadShare head_share(const ParallelPlan& plan, int position, int64_t heads, int64_t kv_heads) const override {
    return head_map(heads, kv_heads, degree_of(plan)).at(static_cast<std::size_t>(position));
  }

  void sequence_to_heads(std::span<const HeadExchange> parts) override { exchanger().sequence_to_heads(parts); }
  void heads_to_sequence(std::span<const HeadExchange> parts) override { exchanger().heads_to_sequence(parts); }

 private:
  HeadExchanger& exchanger() {
    NSP_REQUIRE(exchanger_.has_value(), "a strategy is opened before its hooks run");
    return *exchanger_;
  }
  const int given_degree_;                  // 0 = auto
  int degree_ = 1;                          // set by propose() and open()
  std::optional<HeadExchanger> exchanger_;  // set by open()
};

const nsp_option rows[] = {{"degree", "string", "auto", "ranks that share each sequence: auto, or a whole number that divides the ranks"}};

}  // namespace
}  // namespace nsp

NSP_PLUGIN("parallel", "autosp", "0.1.0", "splits sequences over ranks, and heads around attention", nsp::ParallelStrategy, nsp::Autosp,
           nsp::rows);
