// One transformer block with the norms before its parts: y = x + attention(norm(x)), out = y + mlp(norm(y)). The family decides
// which norm and which feed-forward part.
#pragma once

#include <string>
#include <variant>

#include "core/model/attention.hpp"
#include "core/model/gated_mlp.hpp"
#include "core/model/mlp.hpp"
#include "core/model/module.hpp"
#include "core/model/norm.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Block {
 public:
  // Opens the segment NAME and declares its tensors. layer: its place in a cache of keys and values.
  Block(ParamTable& table, const std::string& name, const ModelSpec& spec, int64_t layer = 0);
  int segment() const noexcept { return segment_; }
  void plan(ActivationPlanner& planner, const BatchShape& largest);
  // out, x [N,C]; both stay with the caller until backward.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView out, TensorView x) const;
  // gradient [N,C] of the residual stream: of out before, of x after. Both residual branches pass it on unchanged, so it is
  // changed in place.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView gradient, TensorView x) const;

 private:
  using FeedForward = std::variant<Mlp, GatedMlp>;
  static FeedForward feed_forward(ParamTable& table, const std::string& name, const ModelSpec& spec);

  std::string name_;
  int segment_;
  int64_t hidden_;
  Norm norm1_;
  Attention attention_;
  Norm norm2_;
  FeedForward mlp_;
  Slot statistics1_, statistics2_;  // of the norms
  Slot middle_;                     // the residual stream after attention, [N,C]
};

}  // namespace nsp
