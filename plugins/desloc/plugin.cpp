// DES-LOC, Iacob et al., arXiv 2505.22549, Algorithm 1 in its pre-update order: parameters and each moment are averaged over
// the replicas with periods of their own, and between averages every replica trains by itself.
//
// At a step t where a state is due, the average is taken of what the state was when the step began, and replaces it before the
// optimizer's step. Forward and backward of step t still read the own parameters x_t, so the averages run under them: the mean
// of x lands in a state of its own and is copied in by finish_step; moments, which nobody reads in between, change in place.
#include "nsp/plugin.hpp"

#include <cstdio>
#include <memory>
#include <optional>

#include "nsp/sync_policy.hpp"
#include "nsp/weighted_mean.hpp"
#include "plugins/desloc/schedule.hpp"

namespace nsp {
namespace {

constexpr const char* landing_kind = "desloc.landing";

// A range that was acquired from the cache for an average.
struct Held {
  StateId state = 0;
  Range range;
  bool written = false;
};

class Desloc : public SyncPolicy {
 public:
  explicit Desloc(const PluginContext& context)
      : plugin_(context), schedule_(read_schedule(context.options)), payload_(context.options.text("reduce_dtype")) {}
  ~Desloc() override;

  bool sums_gradients() const override { return false; }
  bool replicas_differ(int replicas) const override { return replicas > 1; }
  std::vector<StateDecl> declare(const std::vector<StateDecl>& optimizer_states, int replicas) override;
  std::vector<TrafficLine> traffic(int64_t parameters, int replicas) const override;
  int64_t staging_bytes(int replicas, int64_t bucket_elements) const override {
    return replicas > 1 ? bucket_elements * static_cast<int64_t>(sizeof(float)) : 0;
  }

  void open(const SyncContext& context) override;
  void begin_step(int64_t t) override;
  void gradient_ready(Range, TensorView, const After&) override {}  // each replica applies its own gradient
  void finish_step(int64_t t) override;
  std::string synced(int64_t t) const override;

 private:
  struct Averaged {  // a state, where its mean goes, and how often
    NamedState source;
    StateId target = 0;
    int64_t period = never;
  };
  TensorView hold(StateId state, Range range, bool written);
  void release_held();

  const PluginContext plugin_;
  const DeslocSchedule schedule_;
  const std::string payload_;
  int replicas_ = 1;                    // set by declare()
  bool described_ = false;              // the log has what there is to say
  int moments1_ = 0, moments2_ = 0;     // how many states of each moment the optimizer has
  std::optional<SyncContext> context_;  // set by open()
  std::unique_ptr<WeightedMean> mean_;  // only with more than one replica
  std::vector<Averaged> averaged_;      // parameters first, then first moments, then second
  std::vector<Held> held_;              // during a step with averages
};

Desloc::~Desloc() {
  if (mean_) context_->wait.remove(mean_.get());
}

std::vector<StateDecl> Desloc::declare(const std::vector<StateDecl>& optimizer_states, int replicas) {
  replicas_ = replicas;
  moments1_ = moments2_ = 0;
  for (const StateDecl& state : optimizer_states) {
    moments1_ += state.moment == 1 ? 1 : 0;
    moments2_ += state.moment == 2 ? 1 : 0;
  }
  check_schedule(schedule_, plugin_.options, moments1_ > 0, moments2_ > 0);
  // A plan that weighs several layouts declares several times, always with the same optimizer.
  if (!described_) describe_schedule(schedule_, plugin_.options, plugin_.log, moments1_ > 0, moments2_ > 0);
  described_ = true;
  if (replicas == 1 || !schedule_.ever_due(schedule_.kx)) return {};
  return {{.kind = landing_kind, .scope = Scope::per_replica, .merge = Merge::reset, .checkpointed = false}};
}

std::vector<TrafficLine> Desloc::traffic(int64_t parameters, int replicas) const {
  if (replicas <= 1) return {};
  const double all_reduce = 2.0 * (replicas - 1) * 4.0 * static_cast<double>(parameters);
  std::vector<TrafficLine> lines;
  double per_step = 0.0, at_once = 0.0;
  const auto add = [&](const std::string& what, int64_t period, int states) {
    if (states == 0 || period == never) return;
    const double bytes = states * all_reduce;
    lines.push_back({"mean of " + what + " in " + payload_ + " every " + std::to_string(period) + " steps",
                     bytes / static_cast<double>(period), bytes});
    per_step += lines.back().bytes_per_step;
    at_once += bytes;
  };
  add("weights", schedule_.kx, 1);
  add("first moments", schedule_.ku, moments1_);
  add("second moments", schedule_.kv, moments2_);
  if (per_step == 0.0) return lines;
  char ratio[64];
  std::snprintf(ratio, sizeof ratio, "%.2f", all_reduce / per_step);
  std::string total = std::string("desloc in all, ") + ratio + " times less than ddp in fp32";
  if (schedule_.warmup_steps > 1)
    total += " (after the first " + std::to_string(schedule_.warmup_steps) + " steps, which average everything)";
  lines.push_back({total, per_step, at_once, true});
  return lines;
}

void Desloc::open(const SyncContext& context) {
  context_.emplace(context);
  replicas_ = context.replicas;
  if (replicas_ == 1) {
    plugin_.log.info("desloc: there is one replica, so nothing is averaged");
    return;
  }
  mean_ = std::make_unique<WeightedMean>(context.replicate, context.weights, context.stream, context.bucket_elements);
  context_->wait.add(mean_.get());
  NSP_REQUIRE(!context.states.empty() && context.states.front().decl.kind == "weights", "weights are the first state");
  std::optional<StateId> landing;
  for (const NamedState& state : context.states)
    if (state.decl.kind == landing_kind) landing = state.id;
  if (schedule_.ever_due(schedule_.kx)) {
    NSP_REQUIRE(landing.has_value(), "the landing state that was declared has an id");
    averaged_.push_back({context.states.front(), *landing, schedule_.kx});
  }
  for (const int moment : {1, 2}) {
    for (const NamedState& state : context.states)
      if (state.decl.moment == moment) averaged_.push_back({state, state.id, moment == 1 ? schedule_.ku : schedule_.kv});
  }
}

TensorView Desloc::hold(StateId state, Range range, bool written) {
  held_.push_back({state, range, written});
  return context_->cache.acquire(state, range, context_->stream);
}

void Desloc::release_held() {
  for (const Held& h : held_) context_->cache.release(h.state, h.range, h.written);
  held_.clear();
}

void Desloc::begin_step(int64_t t) {
  if (synced(t).empty()) return;
  struct Pair {
    TensorView in, out;
  };
  std::vector<Pair> pairs;
  for (const Averaged& a : averaged_) {
    if (!schedule_.due(a.period, t)) continue;
    for (const Range& range : context_->owned) {
      if (range.empty()) continue;
      const bool in_place = a.target == a.source.id;
      const TensorView in = hold(a.source.id, range, in_place);
      pairs.push_back({in, in_place ? in : hold(a.target, range, true)});
    }
  }
  // One event for all, recorded now: a later one would wait for the forward pass that these averages shall run under.
  // Shared with every collective that starts behind it.
  auto begun = std::make_shared<Event>(context_->stream.device(), "desloc begin_step");
  begun->record(context_->stream);
  for (const Pair& pair : pairs) mean_->add(pair.in, pair.out, begun);
}

void Desloc::finish_step(int64_t t) {
  if (synced(t).empty()) return;
  mean_->finish(context_->wait);
  release_held();
  for (const Averaged& a : averaged_) {
    if (a.target == a.source.id || !schedule_.due(a.period, t)) continue;
    for (const Range& range : context_->owned) {
      if (range.empty()) continue;
      const TensorView mean = context_->cache.acquire(a.target, range, context_->stream);
      const TensorView own = context_->cache.acquire(a.source.id, range, context_->stream);
      Ops(context_->stream).copy(own, mean);
      context_->cache.release(a.source.id, range, true);
      context_->cache.release(a.target, range, false);
    }
  }
}

std::string Desloc::synced(int64_t t) const {
  if (replicas_ == 1) return "";
  std::string what;
  if (schedule_.due(schedule_.kx, t)) what += "x";
  if (moments1_ > 0 && schedule_.due(schedule_.ku, t)) what += "u";
  if (moments2_ > 0 && schedule_.due(schedule_.kv, t)) what += "v";
  return what;
}

const nsp_option rows[] = {
    {"kx", "period", "32", "steps between averages of the parameters, or inf"},
    {"ku", "period", "96", "steps between averages of first moments, or inf; at least kx"},
    {"kv", "period", "192", "steps between averages of second moments, or inf; at least kx"},
    {"warmup_steps", "int", "0", "first steps in which everything is averaged every step"},
    {"reduce_dtype", "choice:fp32", "fp32", "number format in which averages travel"},
};

}  // namespace
}  // namespace nsp

NSP_PLUGIN("sync", "desloc", "0.1.0", "averages parameters and moments over replicas, each with its own period", nsp::SyncPolicy,
           nsp::Desloc, nsp::rows);
