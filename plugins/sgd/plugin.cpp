// SGD with momentum; the arithmetic is the backend's op (nsp/backend.h), equal on every backend.
#include "nsp/plugin.hpp"

#include <cmath>

#include "nsp/optimizer.hpp"

namespace nsp {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const PluginContext& context)
      : momentum_(context.options.number("momentum")),
        weight_decay_(context.options.number("weight_decay")),
        nesterov_(context.options.flag("nesterov")) {
    if (!(momentum_ >= 0.0 && momentum_ < 1.0)) refuse("momentum", momentum_, "0 <= momentum < 1");
    if (!(weight_decay_ >= 0.0 && std::isfinite(weight_decay_))) refuse("weight_decay", weight_decay_, "weight_decay >= 0");
    if (nesterov_ && momentum_ == 0.0) {
      throw Error(ErrorKind::usage,
                  "sgd.nesterov needs momentum. Nesterov's step looks ahead along the momentum, and sgd.momentum is 0. Set --sgd.momentum "
                  "0.9, or --sgd.nesterov false.");
    }
  }

  std::vector<StateDecl> declare() const override {
    if (momentum_ == 0.0) return {};
    return {{.kind = "sgd.momentum", .moment = 1, .merge = Merge::weighted_mean}};
  }

  void step(const Ops& ops, const OptimizerPiece& piece, const StepScalars& scalars) override {
    NSP_REQUIRE(piece.states.size() == (momentum_ == 0.0 ? 0U : 1U), "sgd is given the states it declared");
    const bool decays = piece.role == Role::matrix || piece.role == Role::embedding;
    const Ops::SgdScalars s{.lr = static_cast<float>(scalars.lr),
                            .momentum = static_cast<float>(momentum_),
                            .weight_decay = static_cast<float>(decays ? weight_decay_ : 0.0),
                            .gradient_scale = static_cast<float>(scalars.gradient_scale),
                            .nesterov = nesterov_};
    ops.sgd(piece.weight, piece.gradient, piece.states.empty() ? TensorView() : piece.states[0], s);
  }
  // Reads weight, gradient and momentum, writes all but the gradient.
  double bytes_per_parameter() const override { return (momentum_ == 0.0 ? 3 : 5) * 4.0; }
  std::vector<nsp_op> ops() const override { return {NSP_OP_sgd}; }

 private:
  [[noreturn]] static void refuse(const std::string& name, double value, const std::string& range) {
    throw Error(ErrorKind::usage, "sgd." + name + " is " + std::to_string(value) + ", which is out of range. SGD is defined for " + range +
                                      ". Set --sgd." + name + " accordingly.");
  }
  const double momentum_, weight_decay_;
  const bool nesterov_;
};

const nsp_option rows[] = {{"momentum", "float", "0.9", "momentum factor; 0 = plain SGD without a state"},
                           {"nesterov", "bool", "false", "Nesterov's form of the momentum step"},
                           {"weight_decay", "float", "0", "decay of matrices and embeddings, added to the gradient"}};

}  // namespace
}  // namespace nsp

NSP_PLUGIN("optimizer", "sgd", "0.1.0", "SGD with momentum", nsp::Optimizer, nsp::Sgd, nsp::rows);
