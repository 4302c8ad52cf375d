#include "core/app/job_question.hpp"

#include <optional>

#include "core/plan/advice.hpp"
#include "core/train/job.hpp"

namespace nsp {
namespace {

// autosp with the degree left to it.
class AutomaticSequence {
 public:
  explicit AutomaticSequence(Session& session) {
    const bool in_use = session.uses("autosp");
    if (in_use && session.config().section("autosp").text("degree") == "auto") return;  // it has tried every degree
    try {
      const PluginEntry& entry = session.registry().open("parallel", "autosp");
      options_ = default_options(entry);
      strategy_.emplace(create<ParallelStrategy>(entry, PluginContext{options_, session.log()}));
      how_ = (in_use ? "" : "--plugins " + session.plugin_names_with("autosp") + " ") + "--autosp.degree";
    } catch (const Error&) {
      // Without the module there is nothing to propose.
    }
  }
  std::optional<Alternative> alternative() const {
    if (!strategy_) return std::nullopt;
    return Alternative{how_, **strategy_};
  }

 private:
  Options options_;
  std::string how_;
  std::optional<PluginPtr<ParallelStrategy>> strategy_;
};

}  // namespace

PlanQuestion job_question(const Session& session, const ModelSpec& spec, Topology topology) {
  const Config& config = session.config();
  const Options& train = config.section("train");
  PlanQuestion q;
  q.ranks = static_cast<int>(topology.ranks.size());
  q.global_batch = train.integer("global_batch");
  q.micro_batch = train.text("micro_batch") == "auto" ? 0 : parse::integer(train.text("micro_batch"));
  q.context = train.text("context") == "auto" ? spec.context : parse::integer(train.text("context"));
  q.plugins = session.plugin_names();
  q.dtype = compute_dtype(train.text("dtype"));
  q.bucket_elements = config.section("comm").integer("bucket_mib") * ((1 << 20) / 4);
  // All ranks must decide alike, so the scarcest memory of the job counts.
  q.memory_budget = scarcest_memory(topology);
  q.loop_memory = [spec](MemoryTable& table, const BatchShape& shape) { add_loop_memory(table, shape, spec); };
  q.topology = std::move(topology);
  return q;
}

void require_fit_or_advise(Session& session, const Planned& planned, const PlanQuestion& question, Transformer& model,
                           const Policies& policies) {
  if (all_fit(planned.checks)) return;
  const AutomaticSequence sequence(session);
  require_fit(planned.checks, what_would_fit(planned, question, model, policies, sequence.alternative()));
}

}  // namespace nsp
