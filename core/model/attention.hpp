// Causal multi-head attention: q, k, v from one matrix, attention, output projection. Vaswani et al., arXiv 1706.03762.
// Query heads may share key/value heads (Ainslie et al., arXiv 2305.13245), and the family llama turns q and k by their
// positions (rope; Su et al., arXiv 2104.09864).
//
// With sequence parallelism this rank has all heads of its tokens (a sequence shard) around the matrices, and all tokens of
// its heads (a head shard) inside attention; the strategy exchanges one for the other. Jacobs et al., "DeepSpeed Ulysses",
// arXiv 2309.14509. q and k are turned before the exchange, while each rank has the positions of its tokens at hand.
#pragma once

#include <string>

#include "core/model/linear.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Attention {
 public:
  // layer: its place in a cache of keys and values.
  Attention(ParamTable& table, const std::string& name, const ModelSpec& spec, int64_t layer = 0);
  void plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest);  // what is kept
  void plan_forward(ActivationPlanner& planner, const BatchShape& largest) const;             // scratch
  void plan_backward(ActivationPlanner& planner, const BatchShape& largest) const;
  // y [N,C] from x [N,C], the normalised residual stream.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const;
  // dx [N,C] is overwritten.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const;

 private:
  // q [B,tokens,H,D], k and v [B,tokens,G,D].
  struct Parts {
    TensorView q, k, v;
  };
  // As they lie side by side in rows of (H + 2 G) D; `first` heads in, `heads` of them.
  TensorView heads_of(TensorView qkv, const BatchShape& shape, int64_t first, int64_t heads) const;
  Parts parts_of(TensorView qkv, const BatchShape& shape) const;
  Parts head_shards(const ModelContext& context, DType dtype) const;
  // Turns q and k of [N, (H + 2 G) D] in place; inverse: back, which is the gradient's way. Nothing without rope.
  void turn(const ModelContext& context, TensorView qkv, bool inverse) const;
  // Backward of attention itself on head shards, exchanges included: from dout [N,HD] to dqkv.
  void backward_on_head_shards(const ModelContext& context, const Parts& dqkv, TensorView dout, TensorView lse) const;
  Ops::AttentionOptions options() const;
  // [N, HD] as [B, Tl, H, D].
  TensorView by_heads(TensorView x, const BatchShape& shape) const;
  int64_t width() const noexcept { return heads_ * head_dim_; }
  int64_t qkv_width() const noexcept { return (heads_ + 2 * kv_heads_) * head_dim_; }

  int64_t layer_, heads_, kv_heads_, head_dim_, window_;
  bool rope_;
  float rope_theta_;
  Linear qkv_, proj_;
  // Kept, q and k as turned. Without a head split: qkv [N,(H+2G)D]. With one: q, k, v and the output as head shards [B,T,Hl,D] and
  // [B,T,Gl,D] in its stead.
  Slot qkv_slot_, q_, k_, v_, head_out_;
  Slot out_;  // attention's output [N,HD], the projection's input
  Slot lse_;  // [B,Hl,T]
};

}  // namespace nsp
