// The end of the model: final norm and the classifier, which is the token table (tied) or a table of its own.
//
// Logits [N,V] would be the largest activation by far, so they are made a piece of rows at a time: logits, loss, gradient in
// place, its two products, next piece. That is why a training forward does the head's backward too.
//
// Logits are fp32 in every dtype: a logit of 20 is known to 0.06 in bf16, which is 6% of a probability. Their gradient lies between
// -1 and 1, so in bf16 it is rounded once, relative to itself, for the two products that need it.
#pragma once

#include "core/model/module.hpp"
#include "core/model/norm.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Head {
 public:
  static constexpr int64_t default_logits_bytes = 32 * 1024 * 1024;
  // Rows whose logits are held at once: as many as the bytes hold in fp32, a multiple of 16 where it can be, at least 1.
  static int64_t rows_of_a_piece(int64_t logits_bytes, int64_t padded_vocab) noexcept;
  // Opens the segment "head". wte: the token table's index. An untied table comes last in the segment, since its storage is padded.
  Head(ParamTable& table, const ModelSpec& spec, int wte, int64_t logits_bytes);
  int segment() const noexcept { return segment_; }
  bool tied() const noexcept { return tied_; }
  void plan(ActivationPlanner& planner, const BatchShape& largest) const;
  // Below, `classifier` is the segment that holds the classifier's table: the embedding if tied(), else the head itself.
  //
  // x [N,C]: the residual stream. Adds the sum of losses to loss_sum, f64 [1]. gradient [N,C] is written: with context.train
  // the gradient of x, else the normalised x. With train both segments' gradients are added to.
  void forward(const ModelContext& context, const SegmentViews& head, const SegmentViews& classifier, TensorView x, TensorView gradient,
               TensorView loss_sum) const;
  // Logits of one row of x: out [1, padded_vocab]; padding columns hold something.
  void logits(const ModelContext& context, const SegmentViews& head, const SegmentViews& classifier, TensorView x, int64_t row,
              TensorView out) const;

 private:
  int segment_;
  int64_t hidden_, vocab_, padded_vocab_;
  int64_t piece_rows_;  // a function of the spec alone, never of the batch
  Norm norm_;
  bool tied_;
  int table_;  // of the classifier, [V,C]
};

}  // namespace nsp
