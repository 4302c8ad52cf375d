#include "core/model/layernorm.hpp"

namespace nsp {

LayerNorm::LayerNorm(ParamTable& table, const std::string& name, int64_t channels, double eps)
    : weight_(table.add(name + ".weight", {channels}, Role::norm, {InitKind::ones})),
      bias_(table.add(name + ".bias", {channels}, Role::bias, {InitKind::zeros})),
      eps_(static_cast<float>(eps)) {}

void LayerNorm::forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x, TensorView mean, TensorView rstd) const {
  ops.layernorm_forward(y, x, segment.weight(weight_), segment.weight(bias_), mean, rstd, eps_);
}

void LayerNorm::backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x, TensorView mean,
                         TensorView rstd, bool accumulate_dx) const {
  ops.layernorm_backward(dx, segment.gradient(weight_), segment.gradient(bias_), dy, x, segment.weight(weight_), mean, rstd, accumulate_dx);
}

}  // namespace nsp
