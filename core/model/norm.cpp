#include "core/model/norm.hpp"

namespace nsp {
namespace {

TensorView statistic(TensorView statistics, int64_t i) {
  return statistics.rows(i, i + 1).reshape({statistics.size(1)});
}

}  // namespace

Norm::Norm(ParamTable& table, const std::string& prefix, const std::string& suffix, const ModelSpec& spec)
    : eps_(static_cast<float>(spec.norm_eps)) {
  const std::string name = prefix + (spec.is_llama() ? "norm" : "ln") + suffix;
  weight_ = table.add(name + ".weight", {spec.hidden}, Role::norm, {InitKind::ones});
  bias_ = spec.is_llama() ? -1 : table.add(name + ".bias", {spec.hidden}, Role::bias, {InitKind::zeros});
}

void Norm::forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x, TensorView statistics) const {
  const TensorView rstd = statistic(statistics, 0);
  if (bias_ < 0)
    ops.rmsnorm_forward(y, x, segment.weight(weight_), rstd, eps_);
  else
    ops.layernorm_forward(y, x, segment.weight(weight_), segment.weight(bias_), statistic(statistics, 1), rstd, eps_);
}

void Norm::backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x, TensorView statistics,
                    bool accumulate_dx) const {
  const TensorView rstd = statistic(statistics, 0);
  if (bias_ < 0)
    ops.rmsnorm_backward(dx, segment.gradient(weight_), dy, x, segment.weight(weight_), rstd, accumulate_dx);
  else
    ops.layernorm_backward(dx, segment.gradient(weight_), segment.gradient(bias_), dy, x, segment.weight(weight_), statistic(statistics, 1),
                           rstd, accumulate_dx);
}

}  // namespace nsp
