#include "core/model/mlp.hpp"

#include "core/model/init.hpp"

namespace nsp {

Mlp::Mlp(ParamTable& table, const std::string& name, const ModelSpec& spec)
    : ffn_(spec.ffn),
      fc_(table, name + ".fc", spec.hidden, spec.ffn, init_std, true),
      proj_(table, name + ".proj", spec.ffn, spec.hidden, residual_init_std(spec.layers), true) {}

void Mlp::plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest) {
  before_gelu_ = planner.keep(name + ".before_gelu", largest.dtype, largest.rows() * ffn_);
}

void Mlp::plan_forward(ActivationPlanner& planner, const BatchShape& largest) const {
  PlannedScratch gelu(planner, "gelu", largest.dtype, largest.rows() * ffn_);
}

void Mlp::plan_backward(ActivationPlanner& planner, const BatchShape& largest) const {
  PlannedScratch gelu(planner, "gelu", largest.dtype, largest.rows() * ffn_);
  PlannedScratch gradient(planner, "gelu gradient", largest.dtype, largest.rows() * ffn_);
}

void Mlp::forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const {
  const TensorView before = context.workspace.kept(before_gelu_, x.dtype(), {context.shape.rows(), ffn_});
  Workspace::Scratch gelu(context.workspace, "gelu", x.dtype(), {context.shape.rows(), ffn_});
  fc_.forward(context.ops, segment, before, x);
  context.ops.gelu_forward(gelu.view(), before);
  proj_.forward(context.ops, segment, y, gelu.view());
}

void Mlp::backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const {
  const TensorView before = context.workspace.kept(before_gelu_, x.dtype(), {context.shape.rows(), ffn_});
  Workspace::Scratch gelu(context.workspace, "gelu", x.dtype(), {context.shape.rows(), ffn_});
  Workspace::Scratch gradient(context.workspace, "gelu gradient", x.dtype(), {context.shape.rows(), ffn_});
  context.ops.gelu_forward(gelu.view(), before);
  proj_.backward(context.ops, segment, gradient.view(), dy, gelu.view());
  context.ops.gelu_backward(gradient.view(), gradient.view(), before);
  fc_.backward(context.ops, segment, dx, gradient.view(), x);
}

}  // namespace nsp
