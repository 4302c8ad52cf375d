#include "core/model/linear.hpp"

namespace nsp {

Linear::Linear(ParamTable& table, const std::string& name, int64_t in, int64_t out, double std, bool bias)
    : weight_(table.add(name + ".weight", {out, in}, Role::matrix, {InitKind::normal, std})),
      bias_(bias ? table.add(name + ".bias", {out}, Role::bias, {InitKind::zeros}) : -1) {}

void Linear::forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x) const {
  ops.matmul(y, x, segment.weight(weight_), {.transpose_b = true}, bias_ < 0 ? TensorView() : segment.weight(bias_));
}

void Linear::backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const {
  ops.matmul(segment.gradient(weight_), dy, x, {.transpose_a = true, .accumulate = true});
  if (bias_ >= 0) ops.bias_gradient(segment.gradient(bias_), dy);
  ops.matmul(dx, dy, segment.weight(weight_), {});
}

}  // namespace nsp
