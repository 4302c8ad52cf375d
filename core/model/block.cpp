#include "core/model/block.hpp"

namespace nsp {

Block::Block(ParamTable& table, const std::string& name, const ModelSpec& spec)
    : name_(name),
      segment_(table.add_segment(name)),
      hidden_(spec.hidden),
      ln1_(table, name + ".ln1", spec.hidden, spec.norm_eps),
      attention_(table, name + ".attn", spec),
      ln2_(table, name + ".ln2", spec.hidden, spec.norm_eps),
      mlp_(table, name + ".mlp", spec) {}

Block::Statistics Block::keep_statistics(ActivationPlanner& planner, const std::string& name, int64_t rows) {
  return {planner.keep(name + ".mean", DType::f32, rows), planner.keep(name + ".rstd", DType::f32, rows)};
}

void Block::plan(ActivationPlanner& planner, const BatchShape& largest) {
  const int64_t n = largest.rows();
  statistics1_ = keep_statistics(planner, name_ + ".ln1", n);
  attention_.plan(planner, name_ + ".attn", largest);
  middle_ = planner.keep(name_ + ".middle", DType::f32, n * hidden_);
  statistics2_ = keep_statistics(planner, name_ + ".ln2", n);
  mlp_.plan(planner, name_ + ".mlp", largest);

  PlannedScratch normalized(planner, "normalized", n * hidden_);
  attention_.plan_forward(planner, largest);
  mlp_.plan_forward(planner, largest);
  PlannedScratch dnormalized(planner, "normalized gradient", n * hidden_);
  mlp_.plan_backward(planner, largest);
  attention_.plan_backward(planner, largest);
}

void Block::forward(const ModelContext& context, const SegmentViews& segment, TensorView out, TensorView x) const {
  const int64_t n = context.shape.rows();
  const Workspace& w = context.workspace;
  const TensorView middle = w.kept(middle_, DType::f32, {n, hidden_});
  Workspace::Scratch normalized(context.workspace, "normalized", DType::f32, {n, hidden_});
  ln1_.forward(context.ops, segment, normalized.view(), x, w.kept(statistics1_.mean, DType::f32, {n}),
               w.kept(statistics1_.rstd, DType::f32, {n}));
  attention_.forward(context, segment, middle, normalized.view());
  context.ops.axpy(middle.reshape({n * hidden_}), x.reshape({n * hidden_}), 1.0f);
  context.wait.progress();
  ln2_.forward(context.ops, segment, normalized.view(), middle, w.kept(statistics2_.mean, DType::f32, {n}),
               w.kept(statistics2_.rstd, DType::f32, {n}));
  mlp_.forward(context, segment, out, normalized.view());
  context.ops.axpy(out.reshape({n * hidden_}), middle.reshape({n * hidden_}), 1.0f);
  context.wait.progress();
}

void Block::backward(const ModelContext& context, const SegmentViews& segment, TensorView gradient, TensorView x) const {
  const int64_t n = context.shape.rows();
  const Workspace& w = context.workspace;
  const TensorView middle = w.kept(middle_, DType::f32, {n, hidden_});
  const TensorView mean1 = w.kept(statistics1_.mean, DType::f32, {n}), rstd1 = w.kept(statistics1_.rstd, DType::f32, {n});
  const TensorView mean2 = w.kept(statistics2_.mean, DType::f32, {n}), rstd2 = w.kept(statistics2_.rstd, DType::f32, {n});
  Workspace::Scratch normalized(context.workspace, "normalized", DType::f32, {n, hidden_});
  Workspace::Scratch dnormalized(context.workspace, "normalized gradient", DType::f32, {n, hidden_});
  ln2_.forward(context.ops, segment, normalized.view(), middle, mean2, rstd2);
  mlp_.backward(context, segment, dnormalized.view(), gradient, normalized.view());
  ln2_.backward(context.ops, segment, gradient, dnormalized.view(), middle, mean2, rstd2, true);
  context.wait.progress();
  ln1_.forward(context.ops, segment, normalized.view(), x, mean1, rstd1);
  attention_.backward(context, segment, dnormalized.view(), gradient, normalized.view());
  ln1_.backward(context.ops, segment, gradient, dnormalized.view(), x, mean1, rstd1, true);
  context.wait.progress();
}

}  // namespace nsp
