// The whole model: embedding, blocks, head, with their parameters and the order in which segments are fetched, run and
// finished. Segments: 0 embedding, 1 + l block l, layers + 1 head.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/block.hpp"
#include "core/model/embedding.hpp"
#include "core/model/head.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Transformer {
 public:
  // Declares the parameters. Error(usage) for a spec that cannot be. logits_bytes: the largest piece of logits that is held at
  // once; it decides how rows are cut, so it belongs to what must be equal for equal bits.
  explicit Transformer(const ModelSpec& spec, int64_t logits_bytes = Head::default_logits_bytes);
  const ParamTable& table() const noexcept { return table_; }
  const ModelSpec& spec() const noexcept { return spec_; }

  // Declares all memory of activations for micro-steps up to `largest`: training; evaluation and generation fit into the
  // same. REQUIRES largest.splits_heads as it will be. May be called again, with another planner: the last call counts.
  void plan(ActivationPlanner& planner, const BatchShape& largest);

  // One micro-step. The sum of losses over counted targets is added to loss_sum, f64 [1] on the device; with context.train
  // the head's part of backward is done here too, in one pass with the loss (so gradients of the head, and of the embedding if
  // the head is tied to it, are written).
  // Gradients are sums over tokens, added to what the gradient buffers hold.
  void forward(const ModelContext& context, ParamAccess& params, TensorView loss_sum);
  // REQUIRES forward of the same context with train just before. segment_done(s) is called right after the last op of segment
  // s's gradient was enqueued: head, blocks from the last to the first, embedding.
  void backward(const ModelContext& context, ParamAccess& params, const std::function<void(int segment)>& segment_done);
  // Forward without loss, then the logits of one local row: out [1, padded_vocab]; columns from vocab on are padding.
  // context.batch.targets is not read. With context.cache the batch continues its sequence, and the cache then holds it too.
  void logits(const ModelContext& context, ParamAccess& params, int64_t row, TensorView out);

  int embedding_segment() const noexcept { return embedding_.segment(); }
  int block_segment(int64_t layer) const noexcept { return blocks_[static_cast<std::size_t>(layer)].segment(); }
  int head_segment() const noexcept { return head_.segment(); }

 private:
  // Embedding and blocks; the last residual stream is left in its slot.
  void trunk(const ModelContext& context, ParamAccess& params);
  TensorView residual(const ModelContext& context, int64_t layer) const;  // input of block `layer`; of the head at `layers`

  ModelSpec spec_;
  ParamTable table_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Head head_;
  std::vector<Slot> residual_;  // layers + 1
  Slot gradient_;               // of the residual stream, [N,C]: written by the head, changed in place by every module below
};

}  // namespace nsp
