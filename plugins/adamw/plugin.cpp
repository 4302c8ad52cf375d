// AdamW, Loshchilov and Hutter, arXiv 1711.05101; the arithmetic is the backend's op (nsp/backend.h), equal on every backend.
#include "nsp/plugin.hpp"

#include <cmath>

#include "nsp/optimizer.hpp"

namespace nsp {
namespace {

void require_option(bool holds, const std::string& name, double value, const std::string& range) {
  if (holds) return;
  throw Error(ErrorKind::usage, "adamw." + name + " is " + std::to_string(value) + ", which is out of range. AdamW is defined for " +
                                    range + ". Set --adamw." + name + " accordingly.");
}

class Adamw : public Optimizer {
 public:
  explicit Adamw(const PluginContext& context)
      : beta1_(context.options.number("beta1")),
        beta2_(context.options.number("beta2")),
        eps_(context.options.number("eps")),
        weight_decay_(context.options.number("weight_decay")) {
    require_option(beta1_ >= 0.0 && beta1_ < 1.0, "beta1", beta1_, "0 <= beta1 < 1");
    require_option(beta2_ >= 0.0 && beta2_ < 1.0, "beta2", beta2_, "0 <= beta2 < 1");
    // Checked as fp32, in which the op computes: an eps that rounds to 0 would divide 0 by 0 where a gradient stays 0.
    require_option(static_cast<float>(eps_) > 0.0F && std::isfinite(eps_), "eps", eps_, "eps > 0");
    require_option(weight_decay_ >= 0.0 && std::isfinite(weight_decay_), "weight_decay", weight_decay_, "weight_decay >= 0");
  }

  std::vector<StateDecl> declare() const override {
    StateDecl m{.kind = "adamw.m", .moment = 1, .merge = Merge::weighted_mean};
    StateDecl v{.kind = "adamw.v", .moment = 2, .merge = Merge::weighted_mean};
    return {m, v};
  }

  void step(const Ops& ops, const OptimizerPiece& piece, const StepScalars& scalars) override {
    NSP_REQUIRE(piece.states.size() == 2 && scalars.count >= 1, "adamw is given its two moments and counts updates from 1");
    const bool decays = piece.role == Role::matrix || piece.role == Role::embedding;
    const double t = static_cast<double>(scalars.count);
    const Ops::AdamwScalars s{.lr = static_cast<float>(scalars.lr),
                              .beta1 = static_cast<float>(beta1_),
                              .one_minus_beta1 = static_cast<float>(1.0 - beta1_),
                              .beta2 = static_cast<float>(beta2_),
                              .one_minus_beta2 = static_cast<float>(1.0 - beta2_),
                              .eps = static_cast<float>(eps_),
                              .weight_decay = static_cast<float>(decays ? weight_decay_ : 0.0),
                              .correction1 = static_cast<float>(1.0 / (1.0 - std::pow(beta1_, t))),
                              .correction2 = static_cast<float>(1.0 / (1.0 - std::pow(beta2_, t))),
                              .gradient_scale = static_cast<float>(scalars.gradient_scale)};
    ops.adamw(piece.weight, piece.gradient, piece.states[0], piece.states[1], s);
  }
  // Reads weight, gradient and both moments, writes all but the gradient.
  double bytes_per_parameter() const override { return 7 * 4.0; }
  std::vector<nsp_op> ops() const override { return {NSP_OP_adamw}; }

 private:
  const double beta1_, beta2_, eps_, weight_decay_;
};

const nsp_option rows[] = {{"beta1", "float", "0.9", "decay of the first moment"},
                           {"beta2", "float", "0.95", "decay of the second moment"},
                           {"eps", "float", "1e-8", "added to the root of the second moment"},
                           {"weight_decay", "float", "0.1", "decoupled decay of matrices and embeddings; norms and biases do not decay"}};

}  // namespace
}  // namespace nsp

NSP_BUILTIN_PLUGIN(nsp_builtin_optimizer_adamw, "optimizer", "adamw", "0.1.0", "AdamW with decoupled weight decay", nsp::Optimizer,
                   nsp::Adamw, nsp::rows);
