// Causal multi-head attention: q, k, v from one matrix, attention, output projection. Vaswani et al., arXiv 1706.03762.
//
// With sequence parallelism this rank has all heads of its tokens (a sequence shard) around the matrices, and all tokens of
// its heads (a head shard) inside attention; the strategy exchanges one for the other. Jacobs et al., "DeepSpeed Ulysses",
// arXiv 2309.14509.
#pragma once

#include <string>

#include "core/model/linear.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Attention {
 public:
  Attention(ParamTable& table, const std::string& name, const ModelSpec& spec);
  void plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest);  // what is kept
  void plan_forward(ActivationPlanner& planner, const BatchShape& largest) const;             // scratch
  void plan_backward(ActivationPlanner& planner, const BatchShape& largest) const;
  // y [N,C] from x [N,C], the normalised residual stream.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const;
  // dx [N,C] is overwritten.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const;

 private:
  // q, k, v as they lie side by side in rows of 3 HD: [B, tokens, H, D] each.
  struct Parts {
    TensorView q, k, v;
  };
  Parts parts_of(TensorView qkv, const BatchShape& shape) const;
  Parts head_shards(const ModelContext& context) const;
  Ops::AttentionOptions options() const;
  // [N, HD] as [B, Tl, H, D].
  TensorView by_heads(TensorView x, const BatchShape& shape) const;

  int64_t heads_, head_dim_, window_;
  Linear qkv_, proj_;
  // Kept. Without a head split: qkv [N,3HD]. With one: q, k, v and the output as head shards [B,T,Hl,D] in its stead.
  Slot qkv_slot_, q_, k_, v_, head_out_;
  Slot out_;  // attention's output [N,HD], the projection's input
  Slot lse_;  // [B,Hl,T]
};

}  // namespace nsp
