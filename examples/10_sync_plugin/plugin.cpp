// A sync policy: replicas train apart and average their weights after 1, 2, 4, 8, ... steps, and every `period` steps from then on.
//
// Replicas drift apart fastest while the learning rate is high and the loss is steep, which is at the start. So averages are
// frequent there and rare later: Lin et al., "Don't Use Large Mini-batches, Use Local SGD", arXiv 1808.07217, section 4 (warm-up of
// local SGD with exponentially growing gaps). The optimizer's moments are left to each replica.
#include "nsp/plugin.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nsp/sync_policy.hpp"
#include "nsp/weighted_mean.hpp"

namespace {

using namespace nsp;

constexpr const char* landing_kind = "doubling.landing";

class Doubling final : public SyncPolicy {
 public:
  explicit Doubling(const PluginContext& context) : period_(context.options.period("period")), log_(context.log) {}
  ~Doubling() override {
    if (mean_) context_->wait.remove(mean_.get());
  }

  // --- before the plan: what the policy is, needs and costs --------------------------------------------

  bool sums_gradients() const override { return false; }
  bool replicas_differ(int replicas) const override { return replicas > 1; }

  // Forward and backward read the replica's own weights while their mean is on its way, so the mean needs a place of its own. Nobody
  // needs it after the step: it is not checkpointed.
  std::vector<StateDecl> declare(const std::vector<StateDecl>&, int replicas) override {
    replicas_ = replicas;
    if (replicas == 1) return {};
    return {{.kind = landing_kind, .scope = Scope::per_replica, .merge = Merge::reset, .checkpointed = false}};
  }
  std::vector<TrafficLine> traffic(int64_t parameters, int replicas) const override {
    if (replicas == 1) return {};
    const double once = 2.0 * (replicas - 1) * 4.0 * static_cast<double>(parameters);  // bytes over all ranks: nsp/weighted_mean.hpp
    if (period_ == never) return {{"mean of weights after 1, 2, 4, 8, ... steps", 0.0, once}};
    return {
        {"mean of weights every " + std::to_string(period_) + " steps, more often at first", once / static_cast<double>(period_), once}};
  }
  int64_t staging_bytes(int replicas, int64_t bucket_elements) const override { return replicas == 1 ? 0 : 4 * bucket_elements; }

  // --- in the job --------------------------------------------------------------------------------------

  void open(const SyncContext& context) override {
    context_.emplace(context);
    replicas_ = context.replicas;
    if (replicas_ == 1) {
      log_.info("doubling: there is one replica, so nothing is averaged");
      return;
    }
    weights_ = context.states.front().id;
    for (const NamedState& state : context.states)
      if (state.decl.kind == landing_kind) landing_ = state.id;
    mean_ = std::make_unique<WeightedMean>(context.replicate, context.weights, context.stream, context.bucket_elements);
    context_->wait.add(mean_.get());  // whoever waits for anything drives the averages on
  }

  // Starts the averages and returns; they go on under forward and backward.
  void begin_step(int64_t t) override {
    if (!due(t)) return;
    auto begun = std::make_shared<Event>(context_->stream.device(), "doubling begin_step");  // shared with the collectives behind it
    begun->record(context_->stream);
    for (const Range& range : context_->owned) {
      if (range.empty()) continue;
      mean_->add(context_->cache.acquire(weights_, range, context_->stream), context_->cache.acquire(landing_, range, context_->stream),
                 begun);
    }
  }
  // Each replica applies its own gradient.
  void gradient_ready(Range, TensorView, const After&) override {}

  // After backward and before the optimizer: the mean takes the place of the weights.
  void finish_step(int64_t t) override {
    if (!due(t)) return;
    mean_->finish(context_->wait);
    LocCache& cache = context_->cache;
    for (const Range& range : context_->owned) {
      if (range.empty()) continue;
      cache.release(weights_, range, false);  // acquired by begin_step
      cache.release(landing_, range, true);
      const TensorView mean = cache.acquire(landing_, range, context_->stream);
      const TensorView own = cache.acquire(weights_, range, context_->stream);
      Ops(context_->stream).copy(own, mean);
      cache.release(weights_, range, true);
      cache.release(landing_, range, false);
    }
  }
  std::string synced(int64_t t) const override { return due(t) ? "x" : ""; }

 private:
  // A function of t alone, so that all ranks decide alike and a resumed run decides as the uninterrupted one.
  bool due(int64_t t) const {
    if (replicas_ == 1 || t == 0) return false;
    const bool power_of_two = (t & (t - 1)) == 0;
    if (period_ == never) return power_of_two;
    return t < period_ ? power_of_two : t % period_ == 0;
  }

  const int64_t period_;
  Log& log_;
  int replicas_ = 1;
  StateId weights_ = 0, landing_ = 0;   // set by open()
  std::optional<SyncContext> context_;  // set by open()
  std::unique_ptr<WeightedMean> mean_;  // only with more than one replica
};

const nsp_option rows[] = {{"period", "period", "64", "the largest gap between averages, in steps; inf: gaps double for ever"}};

}  // namespace

NSP_PLUGIN("sync", "doubling", "1.0.0", "averages weights after 1, 2, 4, 8, ... steps, then every period", nsp::SyncPolicy, Doubling, rows);
