// Lookahead around AdamW, Zhang et al., "Lookahead Optimizer: k steps forward, 1 step back", arXiv 1907.08610.
//
// A cycle is k updates. It begins with slow = w; AdamW updates w (the fast weights) k times; it ends with
//   w = slow + alpha (w - slow).
// This is the paper's Algorithm 1: after a cycle its slow and fast weights are equal, so copying w at the next cycle's first update
// gives its phi. Everything is computed by ops that give the same bits on every backend.
#include "nsp/plugin.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "nsp/optimizer.hpp"

namespace {

using namespace nsp;

class Lookahead final : public Optimizer {
 public:
  explicit Lookahead(const PluginContext& context)
      : k_(context.options.integer("k")),
        alpha_(number(context, "alpha")),
        beta1_(number(context, "beta1")),
        beta2_(number(context, "beta2")),
        eps_(number(context, "eps")),
        weight_decay_(number(context, "weight_decay")) {
    require(k_ >= 1, context, "k", "at least 1");
    require(alpha_ > 0.0 && alpha_ <= 1.0, context, "alpha", "above 0 and at most 1");
    require(beta1_ >= 0.0 && beta1_ < 1.0, context, "beta1", "at least 0 and below 1");
    require(beta2_ >= 0.0 && beta2_ < 1.0, context, "beta2", "at least 0 and below 1");
    require(static_cast<float>(eps_) > 0.0F && std::isfinite(eps_), context, "eps", "above 0");  // as fp32, in which it is used
    require(weight_decay_ >= 0.0 && std::isfinite(weight_decay_), context, "weight_decay", "at least 0");
  }

  // Core allocates them, zeroed, beside the weights that this rank owns, counts them in the plan and saves them in checkpoints.
  // `moment` lets sync policies know which may be averaged with the periods for moments.
  std::vector<StateDecl> declare() const override {
    return {{.kind = "lookahead.m", .moment = 1, .merge = Merge::weighted_mean},
            {.kind = "lookahead.v", .moment = 2, .merge = Merge::weighted_mean},
            {.kind = "lookahead.slow", .merge = Merge::weighted_mean}};
  }

  // One tensor's part of what this rank owns. Only enqueues ops; scalars.count is this update's number, from 1.
  void step(const Ops& ops, const OptimizerPiece& piece, const StepScalars& scalars) override {
    NSP_REQUIRE(piece.states.size() == 3 && scalars.count >= 1, "lookahead is given its three states and counts updates from 1");
    const TensorView m = piece.states[0], v = piece.states[1], slow = piece.states[2];
    if ((scalars.count - 1) % k_ == 0) ops.copy(slow, piece.weight);
    ops.adamw(piece.weight, piece.gradient, m, v, adamw_scalars(piece.role, scalars));
    if (scalars.count % k_ == 0) ops.lerp(piece.weight, slow, piece.weight, slow, static_cast<float>(alpha_));
  }

  // AdamW reads 4 and writes 3 values of 4 bytes; a cycle adds a copy (2) and an interpolation (3).
  double bytes_per_parameter() const override { return 4.0 * (7.0 + 5.0 / static_cast<double>(k_)); }

  // What step() calls, now or later: a backend without it is refused before the run starts.
  std::vector<nsp_op> ops() const override { return {NSP_OP_adamw, NSP_OP_copy, NSP_OP_lerp}; }

 private:
  Ops::AdamwScalars adamw_scalars(Role role, const StepScalars& scalars) const {
    const bool decays = role == Role::matrix || role == Role::embedding;
    const double t = static_cast<double>(scalars.count);
    return {.lr = static_cast<float>(scalars.lr),
            .beta1 = static_cast<float>(beta1_),
            .one_minus_beta1 = static_cast<float>(1.0 - beta1_),
            .beta2 = static_cast<float>(beta2_),
            .one_minus_beta2 = static_cast<float>(1.0 - beta2_),
            .eps = static_cast<float>(eps_),
            .weight_decay = static_cast<float>(decays ? weight_decay_ : 0.0),
            .correction1 = static_cast<float>(1.0 / (1.0 - std::pow(beta1_, t))),  // on the host, in double: nsp/backend.h
            .correction2 = static_cast<float>(1.0 / (1.0 - std::pow(beta2_, t))),
            .gradient_scale = static_cast<float>(scalars.gradient_scale)};
  }
  static double number(const PluginContext& context, const std::string& name) { return context.options.number(name); }
  static void require(bool holds, const PluginContext& context, const std::string& name, const std::string& range) {
    if (holds) return;
    throw Error(ErrorKind::usage, "lookahead." + name + " is " + context.options.text(name) + ", which is out of range. It must be " +
                                      range + ". Set --lookahead." + name + " accordingly.");
  }

  const int64_t k_;
  const double alpha_, beta1_, beta2_, eps_, weight_decay_;
};

const nsp_option rows[] = {
    {"k", "int", "5", "updates of a cycle"},
    {"alpha", "float", "0.5", "how far the slow weights follow the fast ones at the end of a cycle; 1 = plain AdamW"},
    {"beta1", "float", "0.9", "decay of the first moment"},
    {"beta2", "float", "0.95", "decay of the second moment"},
    {"eps", "float", "1e-8", "added to the root of the second moment"},
    {"weight_decay", "float", "0.1", "decoupled decay of matrices and embeddings"}};

}  // namespace

NSP_PLUGIN("optimizer", "lookahead", "1.0.0", "AdamW with slow weights that follow every k updates", nsp::Optimizer, Lookahead, rows);
