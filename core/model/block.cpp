#include "core/model/block.hpp"

namespace nsp {

Block::FeedForward Block::feed_forward(ParamTable& table, const std::string& name, const ModelSpec& spec) {
  if (spec.is_llama()) return GatedMlp(table, name, spec);
  return Mlp(table, name, spec);
}

Block::Block(ParamTable& table, const std::string& name, const ModelSpec& spec, int64_t layer)
    : name_(name),
      segment_(table.add_segment(name)),
      hidden_(spec.hidden),
      norm1_(table, name + ".", "1", spec),
      attention_(table, name + ".attn", spec, layer),
      norm2_(table, name + ".", "2", spec),
      mlp_(feed_forward(table, name + ".mlp", spec)) {}

void Block::plan(ActivationPlanner& planner, const BatchShape& largest) {
  const int64_t n = largest.rows();
  statistics1_ = planner.keep(name_ + ".statistics1", DType::f32, norm1_.statistics() * n);
  attention_.plan(planner, name_ + ".attn", largest);
  middle_ = planner.keep(name_ + ".middle", largest.dtype, n * hidden_);
  statistics2_ = planner.keep(name_ + ".statistics2", DType::f32, norm2_.statistics() * n);
  std::visit([&](auto& mlp) { mlp.plan(planner, name_ + ".mlp", largest); }, mlp_);

  PlannedScratch normalized(planner, "normalized", largest.dtype, n * hidden_);
  attention_.plan_forward(planner, largest);
  std::visit([&](const auto& mlp) { mlp.plan_forward(planner, largest); }, mlp_);
  PlannedScratch dnormalized(planner, "normalized gradient", largest.dtype, n * hidden_);
  std::visit([&](const auto& mlp) { mlp.plan_backward(planner, largest); }, mlp_);
  attention_.plan_backward(planner, largest);
}

void Block::forward(const ModelContext& context, const SegmentViews& segment, TensorView out, TensorView x) const {
  const int64_t n = context.shape.rows();
  const Workspace& w = context.workspace;
  const TensorView middle = w.kept(middle_, x.dtype(), {n, hidden_});
  Workspace::Scratch normalized(context.workspace, "normalized", x.dtype(), {n, hidden_});
  norm1_.forward(context.ops, segment, normalized.view(), x, w.kept(statistics1_, DType::f32, {norm1_.statistics(), n}));
  attention_.forward(context, segment, middle, normalized.view());
  context.ops.axpy(middle.reshape({n * hidden_}), x.reshape({n * hidden_}), 1.0f);
  context.wait.progress();
  norm2_.forward(context.ops, segment, normalized.view(), middle, w.kept(statistics2_, DType::f32, {norm2_.statistics(), n}));
  std::visit([&](const auto& mlp) { mlp.forward(context, segment, out, normalized.view()); }, mlp_);
  context.ops.axpy(out.reshape({n * hidden_}), middle.reshape({n * hidden_}), 1.0f);
  context.wait.progress();
}

void Block::backward(const ModelContext& context, const SegmentViews& segment, TensorView gradient, TensorView x) const {
  const int64_t n = context.shape.rows();
  const Workspace& w = context.workspace;
  const TensorView middle = w.kept(middle_, x.dtype(), {n, hidden_});
  const TensorView statistics1 = w.kept(statistics1_, DType::f32, {norm1_.statistics(), n});
  const TensorView statistics2 = w.kept(statistics2_, DType::f32, {norm2_.statistics(), n});
  Workspace::Scratch normalized(context.workspace, "normalized", x.dtype(), {n, hidden_});
  Workspace::Scratch dnormalized(context.workspace, "normalized gradient", x.dtype(), {n, hidden_});
  norm2_.forward(context.ops, segment, normalized.view(), middle, statistics2);
  std::visit([&](const auto& mlp) { mlp.backward(context, segment, dnormalized.view(), gradient, normalized.view()); }, mlp_);
  norm2_.backward(context.ops, segment, gradient, dnormalized.view(), middle, statistics2, true);
  context.wait.progress();
  norm1_.forward(context.ops, segment, normalized.view(), x, statistics1);
  attention_.backward(context, segment, dnormalized.view(), gradient, normalized.view());
  norm1_.backward(context.ops, segment, gradient, dnormalized.view(), x, statistics1, true);
  context.wait.progress();
}

}  // namespace nsp
