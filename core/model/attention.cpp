#include "core/model/attention.hpp"

#include <cmath>
#include <tuple>

#include "core/model/init.hpp"
#include "core/model/kv_cache.hpp"

namespace nsp {

Attention::Attention(ParamTable& table, const std::string& name, const ModelSpec& spec, int64_t layer)
    : layer_(layer),
      heads_(spec.heads),
      kv_heads_(spec.kv_heads),
      head_dim_(spec.head_dim),
      window_(spec.window),
      rope_(spec.is_llama()),
      rope_theta_(static_cast<float>(spec.rope_theta)),
      qkv_(table, name + ".qkv", spec.hidden, spec.qkv_width(), init_std, spec.qkv_bias),
      proj_(table, name + ".proj", spec.attention_width(), spec.hidden, residual_init_std(spec.layers), !spec.is_llama()) {}

void Attention::plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest) {
  if (largest.splits_heads) {
    const int64_t head = largest.micro_batch * largest.tokens * head_dim_;
    q_ = planner.keep(name + ".q", largest.dtype, head * largest.local_heads);
    k_ = planner.keep(name + ".k", largest.dtype, head * largest.local_kv_heads);
    v_ = planner.keep(name + ".v", largest.dtype, head * largest.local_kv_heads);
    head_out_ = planner.keep(name + ".head_out", largest.dtype, head * largest.local_heads);
  } else {
    qkv_slot_ = planner.keep(name + ".qkv", largest.dtype, largest.rows() * qkv_width());
  }
  out_ = planner.keep(name + ".out", largest.dtype, largest.rows() * width());
  lse_ = planner.keep(name + ".lse", DType::f32, largest.micro_batch * largest.local_heads * largest.tokens);
}

void Attention::plan_forward(ActivationPlanner& planner, const BatchShape& largest) const {
  if (largest.splits_heads) PlannedScratch qkv(planner, "qkv", largest.dtype, largest.rows() * qkv_width());
}

void Attention::plan_backward(ActivationPlanner& planner, const BatchShape& largest) const {
  PlannedScratch dout(planner, "attention output gradient", largest.dtype, largest.rows() * width());
  PlannedScratch dqkv(planner, "qkv gradient", largest.dtype, largest.rows() * qkv_width());
  if (!largest.splits_heads) return;
  const int64_t head = largest.micro_batch * largest.tokens * head_dim_;
  PlannedScratch queries(planner, "query head gradients", largest.dtype, 2 * head * largest.local_heads);
  PlannedScratch keys(planner, "key/value head gradients", largest.dtype, 2 * head * largest.local_kv_heads);
}

TensorView Attention::heads_of(TensorView qkv, const BatchShape& shape, int64_t first, int64_t heads) const {
  const int64_t row = qkv_width();
  char* base = static_cast<char*>(qkv.data()) + first * head_dim_ * static_cast<int64_t>(size_of(qkv.dtype()));
  return TensorView(base, qkv.dtype(), {shape.micro_batch, shape.local_tokens, heads, head_dim_},
                    {shape.local_tokens * row, row, head_dim_, 1});
}

Attention::Parts Attention::parts_of(TensorView qkv, const BatchShape& shape) const {
  return {heads_of(qkv, shape, 0, heads_), heads_of(qkv, shape, heads_, kv_heads_), heads_of(qkv, shape, heads_ + kv_heads_, kv_heads_)};
}

Attention::Parts Attention::head_shards(const ModelContext& context, DType dtype) const {
  const BatchShape& s = context.shape;
  const auto shard = [&](const Slot& slot, int64_t heads) {
    return context.workspace.kept(slot, dtype, {s.micro_batch, s.tokens, heads, head_dim_});
  };
  return {shard(q_, s.local_heads), shard(k_, s.local_kv_heads), shard(v_, s.local_kv_heads)};
}

void Attention::turn(const ModelContext& context, TensorView qkv, bool inverse) const {
  if (!rope_) return;
  const TensorView q_and_k = heads_of(qkv, context.shape, 0, heads_ + kv_heads_);
  const TensorView positions = context.batch.positions.reshape({context.shape.micro_batch, context.shape.local_tokens});
  context.ops.rope(q_and_k, q_and_k, positions, rope_theta_, inverse);
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
  const TensorView out = context.workspace.kept(out_, x.dtype(), {s.rows(), width()});
  const TensorView lse = context.workspace.kept(lse_, DType::f32, {s.micro_batch, s.local_heads, s.tokens});
  if (s.splits_heads) {
    Workspace::Scratch qkv(context.workspace, "qkv", x.dtype(), {s.rows(), qkv_width()});
    qkv_.forward(context.ops, segment, qkv.view(), x);
    turn(context, qkv.view(), false);
    const Parts shard = parts_of(qkv.view(), s), heads = head_shards(context, x.dtype());
    const HeadExchange in[] = {{shard.q, heads.q}, {shard.k, heads.k}, {shard.v, heads.v}};
    context.strategy.sequence_to_heads(in);
    const TensorView head_out = context.workspace.kept(head_out_, x.dtype(), {s.micro_batch, s.tokens, s.local_heads, head_dim_});
    context.ops.attention_forward(head_out, lse, heads.q, heads.k, heads.v, context.batch.document_start, options());
    const HeadExchange back[] = {{by_heads(out, s), head_out}};
    context.strategy.heads_to_sequence(back);
  } else {
    const TensorView qkv = context.workspace.kept(qkv_slot_, x.dtype(), {s.rows(), qkv_width()});
    qkv_.forward(context.ops, segment, qkv, x);
    turn(context, qkv, false);
    Parts p = parts_of(qkv, s);
    Ops::AttentionOptions how = options();
    if (context.cache != nullptr) {
      how.query_offset = context.cache->length();
      std::tie(p.k, p.v) = context.cache->append(context.ops, layer_, p.k, p.v);
    }
    context.ops.attention_forward(by_heads(out, s), lse, p.q, p.k, p.v, context.batch.document_start, how);
  }
  proj_.forward(context.ops, segment, y, out);
}

void Attention::backward_on_head_shards(const ModelContext& context, const Parts& dqkv, TensorView dout, TensorView lse) const {
  const BatchShape& s = context.shape;
  const DType dtype = dout.dtype();
  const int64_t head = s.micro_batch * s.tokens * head_dim_, queries = head * s.local_heads, keys = head * s.local_kv_heads;
  Workspace::Scratch of_queries(context.workspace, "query head gradients", dtype, {2 * queries});
  Workspace::Scratch of_keys(context.workspace, "key/value head gradients", dtype, {2 * keys});
  const auto half = [&](const Workspace::Scratch& scratch, int64_t i, int64_t elements, int64_t heads) {
    return scratch.view().slice(i * elements, (i + 1) * elements).reshape({s.micro_batch, s.tokens, heads, head_dim_});
  };
  const TensorView head_dout = half(of_queries, 0, queries, s.local_heads), dq = half(of_queries, 1, queries, s.local_heads);
  const TensorView dk = half(of_keys, 0, keys, s.local_kv_heads), dv = half(of_keys, 1, keys, s.local_kv_heads);
  const HeadExchange in[] = {{by_heads(dout, s), head_dout}};
  context.strategy.sequence_to_heads(in);
  const Parts heads = head_shards(context, dtype);
  const TensorView head_out = context.workspace.kept(head_out_, dtype, {s.micro_batch, s.tokens, s.local_heads, head_dim_});
  context.ops.attention_backward(dq, dk, dv, head_dout, heads.q, heads.k, heads.v, head_out, lse, context.batch.document_start, options());
  const HeadExchange back[] = {{dqkv.q, dq}, {dqkv.k, dk}, {dqkv.v, dv}};
  context.strategy.heads_to_sequence(back);
}

void Attention::backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const {
  const BatchShape& s = context.shape;
  const TensorView out = context.workspace.kept(out_, x.dtype(), {s.rows(), width()});
  const TensorView lse = context.workspace.kept(lse_, DType::f32, {s.micro_batch, s.local_heads, s.tokens});
  Workspace::Scratch dout(context.workspace, "attention output gradient", x.dtype(), {s.rows(), width()});
  Workspace::Scratch dqkv(context.workspace, "qkv gradient", x.dtype(), {s.rows(), qkv_width()});
  proj_.backward(context.ops, segment, dout.view(), dy, out);
  const Parts d = parts_of(dqkv.view(), s);
  if (s.splits_heads) {
    backward_on_head_shards(context, d, dout.view(), lse);
  } else {
    const Parts p = parts_of(context.workspace.kept(qkv_slot_, x.dtype(), {s.rows(), qkv_width()}), s);
    context.ops.attention_backward(d.q, d.k, d.v, by_heads(dout.view(), s), p.q, p.k, p.v, by_heads(out, s), lse,
                                   context.batch.document_start, options());
  }
  turn(context, dqkv.view(), true);
  qkv_.backward(context.ops, segment, dx, dqkv.view(), x);
}

}  // namespace nsp
