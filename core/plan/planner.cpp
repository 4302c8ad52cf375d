#include "core/plan/planner.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>

#include "core/device/byte_text.hpp"
#include "core/plan/replica_traffic.hpp"
#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

JobPlan layout_at(const PlanQuestion& q, ParallelPlan parallel) {
  JobPlan plan;
  plan.ranks = q.ranks;
  plan.replica_size = parallel.replica_size();
  plan.replicas = q.ranks / plan.replica_size;
  plan.parallel = std::move(parallel);
  plan.global_batch = q.global_batch;
  plan.context = q.context;
  plan.threads = q.threads;
  plan.backend = q.backend;
  plan.memory_budget = q.memory_budget;
  plan.shares = equal_shares(q.global_batch, plan.replicas);
  const int64_t local = plan.parallel.token_cuts[1] - plan.parallel.token_cuts[0];
  const int64_t largest = *std::max_element(plan.shares.begin(), plan.shares.end());
  plan.micro_batch = q.micro_batch > 0 ? std::min(q.micro_batch, largest) : auto_micro_batch(largest, local);
  return plan;
}

// The micro-step of the rank whose activations take most memory: tokens and heads may be cut unevenly, each in its own way.
BatchShape largest_shape(const JobPlan& plan, Transformer& model, const ParallelStrategy& strategy) {
  const ModelSpec& spec = model.spec();
  BatchShape largest;
  int64_t most = -1;
  std::set<std::array<int64_t, 3>> seen;  // ranks of equal sizes need the same
  for (int position = 0; position < plan.replica_size; ++position) {
    const HeadShare heads = strategy.head_share(plan.parallel, position, spec.heads, spec.kv_heads);
    const BatchShape shape = plan.shape(position, heads, plan.replica_size > 1);
    if (!seen.insert({shape.local_tokens, shape.local_heads, shape.local_kv_heads}).second) continue;
    ActivationPlanner activations;
    model.plan(activations, shape);
    if (activations.kept_bytes() + activations.scratch_bytes() <= most) continue;
    most = activations.kept_bytes() + activations.scratch_bytes();
    largest = shape;
  }
  return largest;
}

// Declares all states in the order of their ids.
void declare_states(Planned& out, const Policies& p) {
  out.states = {weights_decl(), gradients_decl()};
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

MemoryTable count_memory(const PlanQuestion& q, const Planned& planned, Transformer& model, const Policies& p,
                         const ParallelQuestion& parallel) {
  const JobPlan& plan = planned.plan;
  const BatchShape shape = largest_shape(plan, model, p.strategy);
  ActivationPlanner activations;
  model.plan(activations, shape);
  MemoryTable table;
  add_states(table, model.table(), planned.states, plan.owned(model.table(), 0), p.cache);
  add_activations(table, activations);
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
  ParallelQuestion parallel;
  parallel.ranks = q.ranks;
  parallel.heads = spec.heads;
  parallel.kv_heads = spec.kv_heads;
  parallel.head_dim = spec.head_dim;
  parallel.context = q.context;
  parallel.global_batch = q.global_batch;
  parallel.memory_budget = q.memory_budget;
  const auto planned_at = [&](ParallelPlan plan) {
    Planned out;
    out.plan = layout_at(q, std::move(plan));
    declare_states(out, p);
    out.memory = count_memory(q, out, model, p, parallel);
    return out;
  };
  parallel.bytes_at_degree = [&](int degree) {
    ParallelPlan plan;
    plan.axes = {{"sequence", degree}};
    plan.token_cuts = equal_cuts(q.context, degree);
    const MemoryTable table = planned_at(std::move(plan)).memory;
    return table.device_bytes() + table.host_bytes();
  };
  Planned out = planned_at(p.strategy.propose(parallel));
  for (int i = 0; i < out.plan.replica_size; ++i)
    out.head_shares.push_back(p.strategy.head_share(out.plan.parallel, i, spec.heads, spec.kv_heads));
  out.traffic = p.sync.traffic(model.table().total(), out.plan.replicas);
  out.replica_bytes_per_step = replica_traffic(out.plan, spec, p.strategy, model.table().total());
  return out;
}

std::string plan_report(const Planned& planned, const Transformer& model) {
  const JobPlan& plan = planned.plan;
  const ModelSpec& spec = model.spec();
  std::ostringstream out;
  out << "model: " << spec.family << ", " << spec.layers << " layers, hidden " << spec.hidden << ", " << spec.heads << " heads";
  if (spec.kv_heads != spec.heads) out << " (" << spec.kv_heads << " of keys and values)";
  out << ", ffn " << spec.ffn << ", vocabulary " << spec.vocab << (spec.tied ? " (tied)" : "") << ", " << model.table().total()
      << " parameters\n";
  out << "ranks: " << plan.ranks << " = " << plan.replicas << " replicas x " << plan.replica_size << " ranks; " << plan.threads
      << " threads a rank; backend " << plan.backend << "\n";
  out << "parallel: " << plan.parallel.reason << "\n";
  if (plan.replica_size > 1) {
    out << "tokens of a sequence by position:";
    for (std::size_t i = 0; i + 1 < plan.parallel.token_cuts.size(); ++i)
      out << " [" << plan.parallel.token_cuts[i] << ", " << plan.parallel.token_cuts[i + 1] << ")";
    out << "\nheads by position:";
    for (int i = 0; i < plan.replica_size; ++i) {
      const HeadShare& share = planned.head_shares[static_cast<std::size_t>(i)];
      out << " [" << share.query_lo << ", " << share.query_hi << ")";
      if (spec.kv_heads != spec.heads) out << " with keys and values [" << share.kv_lo << ", " << share.kv_hi << ")";
    }
    out << "\nowned parameters by position:";
    for (int i = 0; i < plan.replica_size; ++i) {
      int64_t n = 0;
      for (const Range& r : plan.owned(model.table(), i)) n += r.size();
      out << ' ' << n;
    }
    out << "\n";
  }
  out << "batch: " << plan.global_batch << " sequences of " << plan.context << " tokens a step; share of each replica:";
  for (int64_t share : plan.shares) out << ' ' << share;
  out << "; at most " << plan.micro_batch << " at once\n";
  out << "\n" << planned.memory.text();
  out << "\nbytes sent by all ranks together\n";
  for (const TrafficLine& line : planned.traffic) {
    char row[200];
    std::snprintf(row, sizeof row, "  %-60s %14.0f a step, %14.0f at once\n", line.what.c_str(), line.bytes_per_step, line.bytes_at_once);
    out << row;
  }
  char row[200];
  std::snprintf(row, sizeof row, "  %-60s %14.0f a step\n", "inside replicas", planned.replica_bytes_per_step);
  out << row;
  int64_t checkpoint = 0;
  for (const StateDecl& decl : planned.states)
    if (decl.checkpointed) checkpoint += model.table().total() * static_cast<int64_t>(size_of(decl.dtype));
  if (planned.spare >= 0) checkpoint = checkpoint * plan.replicas + 4 * model.table().total();
  out << "checkpoint: " << byte_text(checkpoint) << "\n\n[plan]\n" << plan.text();
  return out.str();
}

}  // namespace nsp
