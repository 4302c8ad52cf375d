#include "core/plan/report.hpp"

#include <cstdio>
#include <sstream>

#include "core/device/byte_text.hpp"
#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

std::string plural(int64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string ranks_of(int first, int count) {
  return count == 1 ? "rank " + std::to_string(first) : "ranks " + std::to_string(first) + "-" + std::to_string(first + count - 1);
}

// Replicas whose ranks lie on more than one host.
int64_t spread_replicas(const JobPlan& plan, const Topology& topology) {
  int64_t spread = 0;
  for (int m = 0; m < plan.replicas; ++m) {
    const int first = m * plan.replica_size;
    for (int i = 1; i < plan.replica_size; ++i)
      if (topology.ranks[at(first + i)].host != topology.ranks[at(first)].host) {
        ++spread;
        break;
      }
  }
  return spread;
}

void write_axes(std::ostream& out, const Planned& planned) {
  const JobPlan& plan = planned.plan;
  const int s = plan.replica_size, r = plan.replicas;
  out << "ranks: " << plan.ranks << " = " << plural(r, "replica") << " x " << plural(s, "rank") << "; axes: replicate " << r;
  for (const Axis& axis : plan.parallel.axes) out << " x " << axis.name << ' ' << axis.degree;
  out << "\nparallel: " << plan.parallel.reason << "\nreplicas: 0 = " << ranks_of(0, s);
  if (r > 2) out << ", 1 = " << ranks_of(s, s) << ",";
  if (r > 3) out << " ...,";
  if (r > 1) out << (r > 2 ? " " : ", ") << r - 1 << " = " << ranks_of((r - 1) * s, s);
  if (s > 1) {
    const int64_t spread = spread_replicas(plan, planned.topology);
    out << "; rank r is position r mod " << s << "; "
        << (spread == 0 ? "each replica lies within one host"
                        : plural(spread, "replica") + " of " + std::to_string(r) + " on several hosts");
  }
  out << "\n";
}

// What each position of a replica has, runs of equal ones as one line.
void write_positions(std::ostream& out, const Planned& planned, const ParamTable& table) {
  const JobPlan& plan = planned.plan;
  if (plan.replica_size == 1) {
    out << "owners: every rank owns all " << table.total() << " parameters of its replica\n";
    return;
  }
  struct Share {
    int64_t tokens, owned;
    HeadShare heads;
    bool equals(const Share& other) const {
      return tokens == other.tokens && owned == other.owned && heads.query_heads() == other.heads.query_heads() &&
             heads.kv_heads() == other.heads.kv_heads();
    }
  };
  std::vector<Share> shares;
  for (int p = 0; p < plan.replica_size; ++p) {
    Share share{plan.parallel.token_cuts[at(p) + 1] - plan.parallel.token_cuts[at(p)], 0, planned.head_shares[at(p)]};
    for (const Range& range : plan.owned(table, p)) share.owned += range.size();
    shares.push_back(share);
  }
  out << "owners and shares by position in the replica\n";
  for (std::size_t p = 0; p < shares.size();) {
    std::vector<int> equal;
    const Share& share = shares[p];
    for (; p < shares.size() && shares[p].equals(share); ++p) equal.push_back(static_cast<int>(p));
    out << "  " << position_text(equal) << ": " << plural(share.tokens, "token") << " of a sequence, attends with "
        << plural(share.heads.query_heads(), "head") << " (" << share.heads.kv_heads() << " of keys and values), owns " << share.owned
        << " parameters\n";
  }
}

// No rank can be faster than its peak, and a replica waits for its slowest rank; not said where a peak is not known.
std::string compute_text(const Planned& planned, const ModelSpec& spec) {
  const JobPlan& plan = planned.plan;
  const double per_token = spec.flops_per_token(plan.context);
  char text[200];
  std::snprintf(text, sizeof text, "compute: %.3g FLOP a step", per_token * static_cast<double>(plan.global_batch * plan.context));
  const std::string work = text;
  double slowest = 0;
  int rank_of_slowest = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const double peak = planned.topology.ranks[at(rank)].peak_gflops * 1e9;
    if (peak <= 0) return work + "\n";
    const int p = plan.position_of(rank);
    const auto tokens = static_cast<double>(plan.parallel.token_cuts[at(p) + 1] - plan.parallel.token_cuts[at(p)]);
    const double seconds = per_token * tokens * static_cast<double>(plan.shares[at(plan.replica_of(rank))]) / peak;
    if (seconds > slowest) {
      slowest = seconds;
      rank_of_slowest = rank;
    }
  }
  std::snprintf(text, sizeof text, "; at %s peaks at least %.3g s a step, which %s needs\n",
                planned.topology.described ? "the nominal" : "the measured", slowest,
                planned.topology.ranks[at(rank_of_slowest)].device_name.c_str());
  return work + text;
}

}  // namespace

std::string plan_report(const Planned& planned, const Transformer& model) {
  const JobPlan& plan = planned.plan;
  const ModelSpec& spec = model.spec();
  std::ostringstream out;
  out << "model: " << spec.family << ", " << spec.layers << " layers, hidden " << spec.hidden << ", " << spec.heads << " heads";
  if (spec.kv_heads != spec.heads) out << " (" << spec.kv_heads << " of keys and values)";
  out << ", ffn " << spec.ffn << ", vocabulary " << spec.vocab << (spec.tied ? " (tied)" : "") << ", " << model.table().total()
      << " parameters\n";
  out << "\n" << planned.topology.text() << "\n";
  write_axes(out, planned);
  write_positions(out, planned, model.table());
  out << "batch: " << plural(plan.global_batch, "sequence") << " of " << plural(plan.context, "token")
      << " a step; share of each replica: " << shares_text(plan.shares) << "; at most " << plan.micro_batch << " at once";
  if (planned.usual_micro_batch > plan.micro_batch) out << " (the usual " << planned.usual_micro_batch << " do not fit)";
  out << "\n";
  out << "numbers: weights and activations " << name_of(plan.dtype) << "; " << (plan.dtype == DType::f32 ? "" : "master weights, ")
      << "gradient sums and optimizer states fp32\n";
  out << compute_text(planned, spec);
  out << "\n" << memory_text(planned.kinds) << "\n" << fit_text(planned.checks);
  out << "\n" << links_text(planned.links);
  const CheckpointSize size = planned.checkpoint;
  out << "\ncheckpoint: " << byte_text(size.total) << " (" << size.total << " bytes of tensors), at most " << byte_text(size.largest_rank)
      << " by one rank\n\n[plan]\n"
      << plan.short_text();
  return out.str();
}

}  // namespace nsp
