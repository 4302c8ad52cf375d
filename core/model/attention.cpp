#include "core/model/attention.hpp"

#include <cmath>

#include "core/model/init.hpp"

namespace nsp {
namespace {

int64_t head_shard_elements(const BatchShape& shape, int64_t head_dim) {
  return shape.micro_batch * shape.tokens * shape.local_heads * head_dim;
}

}  // namespace

Attention::Attention(ParamTable& table, const std::string& name, const ModelSpec& spec)
    : heads_(spec.heads),
      head_dim_(spec.head_dim),
      window_(spec.window),
      qkv_(table, name + ".qkv", spec.hidden, 3 * spec.attention_width(), init_std),
      proj_(table, name + ".proj", spec.attention_width(), spec.hidden, residual_init_std(spec.layers)) {}

void Attention::plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest) {
  const int64_t width = heads_ * head_dim_;
  if (largest.splits_heads) {
    const int64_t shard = head_shard_elements(largest, head_dim_);
    q_ = planner.keep(name + ".q", DType::f32, shard);
    k_ = planner.keep(name + ".k", DType::f32, shard);
    v_ = planner.keep(name + ".v", DType::f32, shard);
    head_out_ = planner.keep(name + ".head_out", DType::f32, shard);
  } else {
    qkv_slot_ = planner.keep(name + ".qkv", DType::f32, largest.rows() * 3 * width);
  }
  out_ = planner.keep(name + ".out", DType::f32, largest.rows() * width);
  lse_ = planner.keep(name + ".lse", DType::f32, largest.micro_batch * largest.local_heads * largest.tokens);
}

void Attention::plan_forward(ActivationPlanner& planner, const BatchShape& largest) const {
  if (largest.splits_heads) PlannedScratch qkv(planner, "qkv", largest.rows() * 3 * heads_ * head_dim_);
}

void Attention::plan_backward(ActivationPlanner& planner, const BatchShape& largest) const {
  const int64_t width = heads_ * head_dim_;
  PlannedScratch dout(planner, "attention output gradient", largest.rows() * width);
  PlannedScratch dqkv(planner, "qkv gradient", largest.rows() * 3 * width);
  if (!largest.splits_heads) return;
  PlannedScratch heads(planner, "head shard gradients", 4 * head_shard_elements(largest, head_dim_));
}

Attention::Parts Attention::parts_of(TensorView qkv, const BatchShape& shape) const {
  const int64_t width = heads_ * head_dim_, row = 3 * width;
  const auto part = [&](int64_t i) {
    char* base = static_cast<char*>(qkv.data()) + i * width * static_cast<int64_t>(size_of(qkv.dtype()));
    return TensorView(base, qkv.dtype(), {shape.micro_batch, shape.local_tokens, heads_, head_dim_},
                      {shape.local_tokens * row, row, head_dim_, 1});
  };
  return {part(0), part(1), part(2)};
}

Attention::Parts Attention::head_shards(const ModelContext& context) const {
  const BatchShape& s = context.shape;
  const auto shard = [&](const Slot& slot) {
    return context.workspace.kept(slot, DType::f32, {s.micro_batch, s.tokens, s.local_heads, head_dim_});
  };
  return {shard(q_), shard(k_), shard(v_)};
}

Ops::AttentionOptions Attention::options() const {
  return {
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim_))), .causal = true, .query_offset = 0, .window = window_};
}

TensorView Attention::by_heads(TensorView x, const BatchShape& shape) const {
  return x.reshape({shape.micro_batch, shape.local_tokens, heads_, head_dim_});
}

void Attention::forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const {
  const BatchShape& s = context.shape;
  const int64_t width = heads_ * head_dim_;
  const TensorView out = context.workspace.kept(out_, DType::f32, {s.rows(), width});
  const TensorView lse = context.workspace.kept(lse_, DType::f32, {s.micro_batch, s.local_heads, s.tokens});
  if (s.splits_heads) {
    Workspace::Scratch qkv(context.workspace, "qkv", DType::f32, {s.rows(), 3 * width});
    qkv_.forward(context.ops, segment, qkv.view(), x);
    const Parts shard = parts_of(qkv.view(), s), heads = head_shards(context);
    const HeadExchange in[] = {{shard.q, heads.q}, {shard.k, heads.k}, {shard.v, heads.v}};
    context.strategy.sequence_to_heads(in);
    const TensorView head_out = context.workspace.kept(head_out_, DType::f32, {s.micro_batch, s.tokens, s.local_heads, head_dim_});
    context.ops.attention_forward(head_out, lse, heads.q, heads.k, heads.v, context.batch.document_start, options());
    const HeadExchange back[] = {{by_heads(out, s), head_out}};
    context.strategy.heads_to_sequence(back);
  } else {
    const TensorView qkv = context.workspace.kept(qkv_slot_, DType::f32, {s.rows(), 3 * width});
    qkv_.forward(context.ops, segment, qkv, x);
    const Parts p = parts_of(qkv, s);
    context.ops.attention_forward(by_heads(out, s), lse, p.q, p.k, p.v, context.batch.document_start, options());
  }
  proj_.forward(context.ops, segment, y, out);
}

void Attention::backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const {
  const BatchShape& s = context.shape;
  const int64_t width = heads_ * head_dim_;
  const TensorView out = context.workspace.kept(out_, DType::f32, {s.rows(), width});
  const TensorView lse = context.workspace.kept(lse_, DType::f32, {s.micro_batch, s.local_heads, s.tokens});
  Workspace::Scratch dout(context.workspace, "attention output gradient", DType::f32, {s.rows(), width});
  Workspace::Scratch dqkv(context.workspace, "qkv gradient", DType::f32, {s.rows(), 3 * width});
  proj_.backward(context.ops, segment, dout.view(), dy, out);
  const Parts d = parts_of(dqkv.view(), s);
  if (s.splits_heads) {
    const int64_t shard = head_shard_elements(s, head_dim_);
    Workspace::Scratch gradients(context.workspace, "head shard gradients", DType::f32, {4 * shard});
    const auto part = [&](int64_t i) {
      return gradients.view().slice(i * shard, (i + 1) * shard).reshape({s.micro_batch, s.tokens, s.local_heads, head_dim_});
    };
    const TensorView head_dout = part(0), dq = part(1), dk = part(2), dv = part(3);
    const HeadExchange in[] = {{by_heads(dout.view(), s), head_dout}};
    context.strategy.sequence_to_heads(in);
    const Parts heads = head_shards(context);
    const TensorView head_out = context.workspace.kept(head_out_, DType::f32, {s.micro_batch, s.tokens, s.local_heads, head_dim_});
    context.ops.attention_backward(dq, dk, dv, head_dout, heads.q, heads.k, heads.v, head_out, lse, context.batch.document_start,
                                   options());
    const HeadExchange back[] = {{d.q, dq}, {d.k, dk}, {d.v, dv}};
    context.strategy.heads_to_sequence(back);
  } else {
    const Parts p = parts_of(context.workspace.kept(qkv_slot_, DType::f32, {s.rows(), 3 * width}), s);
    context.ops.attention_backward(d.q, d.k, d.v, by_heads(dout.view(), s), p.q, p.k, p.v, by_heads(out, s), lse,
                                   context.batch.document_start, options());
  }
  qkv_.backward(context.ops, segment, dx, dqkv.view(), x);
}

}  // namespace nsp
