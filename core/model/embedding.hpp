// Token table, and for gpt2 a position table: x[n] = wte[token n] + wpe[position n].
#pragma once

#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Embedding {
 public:
  // Opens the segment "embedding". wte comes last, since its storage is padded to padded_vocab rows.
  Embedding(ParamTable& table, const ModelSpec& spec);
  int segment() const noexcept { return segment_; }
  int token_table() const noexcept { return wte_; }  // a tied head's classifier too
  // x [N,C] is written.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView x) const;
  // gradient [N,C] of x.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView gradient) const;

 private:
  int segment_, wpe_, wte_;  // wpe_ -1: positions are not in the embedding
};

}  // namespace nsp
