// The whole model in double precision: sum of losses and its gradient.
#pragma once

#include "core/model/spec.hpp"
#include "tests/model/reference_layers.hpp"

namespace nsp::test {

struct ReferenceBatch {
  int64_t batch = 0, tokens = 0;
  std::vector<int32_t> input, target, position;  // [B,T]; a target < 0 is not counted
  std::vector<int32_t> document_start;           // [B,T] or empty
};

struct ReferenceResult {
  double loss_sum = 0;
  int64_t counted = 0;
  Values logits;  // [B*T, V]
  Params gradients;
};

// gradients are only made when wanted.
ReferenceResult reference_step(const ModelSpec& spec, const Params& params, const ReferenceBatch& batch, bool want_gradients);

// What the blocks of a model do with this batch.
AttentionShape attention_shape(const ModelSpec& spec, const ReferenceBatch& batch);

// The head alone: sum of losses from the residual stream, and the gradient of x; parameters of the norm and the classifier.
struct HeadResult {
  double loss_sum = 0;
  int64_t counted = 0;
  Values logits, dx;
};
HeadResult reference_head(const ModelSpec& spec, const Params& params, const Values& x, const std::vector<int32_t>& target,
                          Params* gradients);

}  // namespace nsp::test
