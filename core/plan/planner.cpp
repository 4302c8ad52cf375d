#include "core/plan/planner.hpp"

#include <algorithm>
#include <map>

#include "core/plan/kernel_memory.hpp"
#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

Topology topology_of(const PlanQuestion& q) {
  if (!q.topology.ranks.empty()) {
    NSP_REQUIRE(static_cast<int>(q.topology.ranks.size()) == q.ranks, "the topology has a rank for each of the plan");
    return q.topology;
  }
  Topology one_host;
  RankInfo info;
  info.host = "one host";
  info.backend = q.backend;
  info.device_name = "device";
  info.device_kind = "cpu";
  info.threads = q.threads;
  one_host.ranks.assign(static_cast<std::size_t>(q.ranks), info);
  return one_host;
}

// micro_batch: 0 = the one that was given, or auto's.
JobPlan layout_at(const PlanQuestion& q, ParallelPlan parallel, int64_t micro_batch) {
  JobPlan plan;
  plan.ranks = q.ranks;
  plan.replica_size = parallel.replica_size();
  plan.replicas = q.ranks / plan.replica_size;
  plan.parallel = std::move(parallel);
  plan.global_batch = q.global_batch;
  plan.context = q.context;
  plan.dtype = q.dtype;
  std::vector<std::string> threads, backends;
  for (const RankInfo& rank : topology_of(q).ranks) {
    threads.push_back(std::to_string(rank.threads));
    backends.push_back(rank.backend);
  }
  plan.threads = by_rank(threads);
  plan.backend = by_rank(backends);
  plan.plugins = q.plugins;
  plan.memory_budget = q.memory_budget;
  plan.shares = equal_shares(q.global_batch, plan.replicas);
  const int64_t local = plan.parallel.token_cuts[1] - plan.parallel.token_cuts[0];
  const int64_t largest = *std::max_element(plan.shares.begin(), plan.shares.end());
  if (micro_batch == 0) micro_batch = q.micro_batch;
  plan.micro_batch = micro_batch > 0 ? std::min(micro_batch, largest) : auto_micro_batch(largest, local);
  return plan;
}

// Declares all states in the order of their ids.
void declare_states(Planned& out, const Policies& p) {
  out.states = {weights_decl(out.plan.dtype), gradients_decl()};
  out.master = weights_state;
  if (out.plan.dtype != DType::f32) {
    out.master = static_cast<StateId>(out.states.size());
    out.states.push_back(master_decl());
  }
  const bool differ = p.sync.replicas_differ(out.plan.replicas);
  const std::vector<StateDecl> optimizer = p.optimizer.declare();
  for (StateDecl decl : optimizer) {
    out.optimizer_states.push_back(static_cast<StateId>(out.states.size()));
    out.states.push_back(std::move(decl));
  }
  for (StateDecl decl : p.sync.declare(optimizer, out.plan.replicas)) {
    // A state that lives only within a step may serve evaluation and checkpoints between steps.
    if (out.spare < 0 && decl.extent == Extent::owned && decl.dtype == DType::f32 && !decl.checkpointed)
      out.spare = static_cast<StateId>(out.states.size());
    out.sync_states.push_back(static_cast<StateId>(out.states.size()));
    out.states.push_back(std::move(decl));
  }
  if (differ && out.spare < 0) {
    StateDecl spare;
    spare.kind = "core.spare";
    spare.merge = Merge::reset;
    spare.checkpointed = false;
    out.spare = static_cast<StateId>(out.states.size());
    out.states.push_back(spare);
  }
  if (!differ) out.spare = -1;
  for (StateDecl& decl : out.states)
    if (differ) decl.scope = Scope::per_replica;
}

// What sums over the ranks of a group hold on the host: up to three at once, each with the contributions of the other ranks to
// a window of blocks, which the exchange engine limits (comm/exchange.cpp).
int64_t communication_staging(int ranks, int64_t elements) {
  constexpr int64_t at_once = 3, window_bytes = 32 << 20;
  return ranks > 1 ? at_once * std::min(window_bytes, (ranks - 1) * 4 * elements) : 0;
}

// cpu_threads: cpu_threads_by_position().
MemoryTable count_memory(const PlanQuestion& q, const Planned& planned, Transformer& model, const Policies& p,
                         const ParallelQuestion& parallel, const std::vector<int>& cpu_threads, int position) {
  const JobPlan& plan = planned.plan;
  const BatchShape shape = plan.shape(position, planned.head_shares[static_cast<std::size_t>(position)], plan.replica_size > 1);
  ActivationPlanner activations;
  model.plan(activations, shape);
  MemoryTable table;
  const std::vector<Range> owned = plan.owned(model.table(), position);
  add_states(table, model.table(), planned.states, owned, p.cache);
  add_activations(table, activations);
  if (!cpu_threads.empty()) {
    int64_t largest_sum = 0;
    for (const Range& range : owned) largest_sum = std::max(largest_sum, range.size());
    const int threads = cpu_threads[static_cast<std::size_t>(position)];
    add_kernels(table, threads == 0 ? 0 : kernel_memory(model.spec(), shape, threads, largest_sum, Passes::forward_and_backward));
  }
  const auto add = [&](const char* what, const char* tier, int64_t bytes) {
    if (bytes > 0) table.lines.push_back({what, "", tier, bytes});
  };
  add("staging: sync policy", "device", p.sync.staging_bytes(plan.replicas, q.bucket_elements));
  add("staging: parallel", "device", p.strategy.staging_bytes(plan.parallel, parallel, plan.micro_batch));
  if (p.sync.replicas_differ(plan.replicas)) add("staging: mean of replicas", "device", 4 * q.bucket_elements);
  int64_t largest = 0;
  for (const Segment& segment : model.table().segments()) largest = std::max(largest, segment.size);
  add("staging: sums in a replica", "host", communication_staging(plan.replica_size, largest));
  if (p.sync.sums_gradients())
    add("staging: sums over replicas", "host", communication_staging(plan.replicas, std::min(largest, q.bucket_elements)));
  if (q.loop_memory) q.loop_memory(table, shape);
  return table;
}

// Every position's need; those that print alike are one kind.
std::vector<PositionKind> position_kinds(const PlanQuestion& q, const Planned& planned, Transformer& model, const Policies& p,
                                         const ParallelQuestion& parallel, const std::vector<int>& cpu_threads) {
  std::vector<PositionKind> kinds;
  std::map<std::string, std::size_t> index;
  for (int position = 0; position < planned.plan.replica_size; ++position) {
    PositionKind own{{position}, count_memory(q, planned, model, p, parallel, cpu_threads, position)};
    const auto [it, fresh] = index.try_emplace(memory_text({{{0}, own.memory}}), kinds.size());
    if (fresh) {
      kinds.push_back(std::move(own));
      continue;
    }
    PositionKind& kind = kinds[it->second];
    kind.positions.push_back(position);
    if (own.memory.bytes() > kind.memory.bytes()) kind.memory = std::move(own.memory);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.memory.bytes() > b.memory.bytes(); });
  return kinds;
}

ParallelQuestion parallel_question(const PlanQuestion& q, const ModelSpec& spec) {
  ParallelQuestion parallel;
  parallel.ranks = q.ranks;
  parallel.heads = spec.heads;
  parallel.kv_heads = spec.kv_heads;
  parallel.head_dim = spec.head_dim;
  parallel.context = q.context;
  parallel.global_batch = q.global_batch;
  parallel.memory_budget = q.memory_budget;
  parallel.dtype = q.dtype;
  return parallel;
}

// Plans a job with the usual micro-batch, or with one that gives way to memory.
class Planner {
 public:
  Planner(const PlanQuestion& q, Transformer& model, const Policies& p)
      : q_(q), model_(model), p_(p), topology_(topology_of(q)), parallel_(parallel_question(q, model.spec())) {}

  // The strategy's layout; checked. shrink: an automatic micro-batch becomes the largest that fits, or 1.
  Planned plan(bool shrink) {
    const bool host_counts =
        std::any_of(topology_.ranks.begin(), topology_.ranks.end(), [](const RankInfo& r) { return r.device_kind == "cpu"; });
    // Where a rank's device memory is its host's, staging there counts against the same room.
    const auto bytes = [&](const Planned& planned) { return host_counts ? planned.memory().bytes() : planned.memory().device_bytes(); };
    ParallelQuestion question = parallel_;
    question.bytes_at_degree = [&](int degree) {
      ParallelPlan layout;
      layout.axes = {{"sequence", degree}};
      layout.token_cuts = equal_cuts(q_.context, degree);
      return bytes(shrink ? shrunk(layout, [&](const Planned& planned) { return bytes(planned) <= q_.memory_budget; }) : at(layout, 0));
    };
    const ParallelPlan layout = p_.strategy.propose(question);
    const auto fits = [&](const Planned& planned) { return all_fit(check_memory(planned.plan, planned.kinds, topology_)); };
    Planned out = shrink ? shrunk(layout, fits) : at(layout, 0);
    out.checks = check_memory(out.plan, out.kinds, topology_);
    out.topology = topology_;
    return out;
  }

 private:
  Planned at(const ParallelPlan& layout, int64_t micro_batch) {
    Planned out;
    out.plan = layout_at(q_, layout, micro_batch);
    for (int i = 0; i < out.plan.replica_size; ++i)
      out.head_shares.push_back(p_.strategy.head_share(out.plan.parallel, i, parallel_.heads, parallel_.kv_heads));
    declare_states(out, p_);
    out.kinds = position_kinds(q_, out, model_, p_, parallel_, cpu_threads_by_position(out.plan, topology_));
    return out;
  }

  // Memory grows with the micro-batch, so halving finds the largest that fits; the pieces are near-equal again.
  template <class Fits>
  Planned shrunk(const ParallelPlan& layout, Fits fits) {
    Planned usual = at(layout, 0);
    if (q_.micro_batch > 0 || fits(usual)) return usual;
    int64_t most = 1;
    for (int64_t low = 2, high = usual.plan.micro_batch - 1; low <= high;) {
      const int64_t middle = (low + high) / 2;
      const bool good = fits(at(layout, middle));
      if (good) most = middle;
      (good ? low : high) = good ? middle + 1 : middle - 1;
    }
    const int64_t share = *std::max_element(usual.plan.shares.begin(), usual.plan.shares.end()), steps = (share + most - 1) / most;
    Planned out = at(layout, (share + steps - 1) / steps);
    out.usual_micro_batch = usual.plan.micro_batch;
    return out;
  }

  const PlanQuestion& q_;
  Transformer& model_;
  const Policies& p_;
  const Topology topology_;
  const ParallelQuestion parallel_;  // without bytes_at_degree
};

}  // namespace

std::vector<int64_t> equal_cuts(int64_t total, int parts) {
  std::vector<int64_t> cuts;
  for (int i = 0; i <= parts; ++i) cuts.push_back(total * i / parts);
  return cuts;
}

Planned plan_job(const PlanQuestion& q, Transformer& model, const Policies& p) {
  const ModelSpec& spec = model.spec();
  if (q.context > spec.context)
    throw Error(ErrorKind::usage, "train.context = " + std::to_string(q.context) +
                                      " is longer than model.context = " + std::to_string(spec.context) +
                                      ". The model has no positions beyond it. Lower train.context or raise model.context.");
  Planner planner(q, model, p);
  Planned out = planner.plan(false);
  // A smaller micro-batch costs speed, so it comes after everything that the strategy can do.
  if (q.micro_batch == 0 && !all_fit(out.checks)) out = planner.plan(true);
  const auto bytes = [&](StateId id) { return static_cast<int64_t>(size_of(out.states[static_cast<std::size_t>(id)].dtype)); };
  // Activations have the type of the weights.
  out.links = count_links(out.plan, model.table(), {spec.layers, spec.head_dim, out.head_shares},
                          p.sync.traffic(model.table().total(), out.plan.replicas),
                          {bytes(weights_state), bytes(gradients_state), bytes(weights_state)}, out.topology);
  out.checkpoint = checkpoint_size(out.plan, model.table(), out.states, out.spare >= 0);
  return out;
}

}  // namespace nsp
