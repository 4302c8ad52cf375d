#include "core/model/gated_mlp.hpp"

#include "core/model/init.hpp"

namespace nsp {

GatedMlp::GatedMlp(ParamTable& table, const std::string& name, const ModelSpec& spec)
    : ffn_(spec.ffn),
      gate_up_(table, name + ".gate_up", spec.hidden, 2 * spec.ffn, init_std, false),
      proj_(table, name + ".proj", spec.ffn, spec.hidden, residual_init_std(spec.layers), false) {}

void GatedMlp::plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest) {
  gate_up_slot_ = planner.keep(name + ".gate_up", largest.dtype, largest.rows() * 2 * ffn_);
}

void GatedMlp::plan_forward(ActivationPlanner& planner, const BatchShape& largest) const {
  PlannedScratch gated(planner, "gated", largest.dtype, largest.rows() * ffn_);
}

void GatedMlp::plan_backward(ActivationPlanner& planner, const BatchShape& largest) const {
  PlannedScratch gate_up(planner, "gate and up gradient", largest.dtype, largest.rows() * 2 * ffn_);
  PlannedScratch gradient(planner, "gated gradient", largest.dtype, largest.rows() * ffn_);
}

TensorView GatedMlp::half(TensorView x, int64_t which) const {
  char* base = static_cast<char*>(x.data()) + which * ffn_ * static_cast<int64_t>(size_of(x.dtype()));
  return TensorView(base, x.dtype(), {x.size(0), ffn_}, {x.stride(0), 1});
}

void GatedMlp::forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const {
  const int64_t n = context.shape.rows();
  const TensorView gate_up = context.workspace.kept(gate_up_slot_, x.dtype(), {n, 2 * ffn_});
  Workspace::Scratch gated(context.workspace, "gated", x.dtype(), {n, ffn_});
  gate_up_.forward(context.ops, segment, gate_up, x);
  context.ops.swiglu_forward(gated.view(), half(gate_up, 0), half(gate_up, 1));
  proj_.forward(context.ops, segment, y, gated.view());
}

void GatedMlp::backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const {
  const int64_t n = context.shape.rows();
  const TensorView gate_up = context.workspace.kept(gate_up_slot_, x.dtype(), {n, 2 * ffn_});
  const TensorView gate = half(gate_up, 0), up = half(gate_up, 1);
  Workspace::Scratch dgate_up(context.workspace, "gate and up gradient", x.dtype(), {n, 2 * ffn_});
  Workspace::Scratch gradient(context.workspace, "gated gradient", x.dtype(), {n, ffn_});
  const TensorView dgate = half(dgate_up.view(), 0), dup = half(dgate_up.view(), 1);
  const TensorView gated = dup;  // its gradient takes the place when it is not needed any more
  context.ops.swiglu_forward(gated, gate, up);
  proj_.backward(context.ops, segment, gradient.view(), dy, gated);
  context.ops.swiglu_backward(dgate, dup, gradient.view(), gate, up);
  gate_up_.backward(context.ops, segment, dx, dgate_up.view(), x);
}

}  // namespace nsp
