#include "core/model/embedding.hpp"

#include "core/model/init.hpp"

namespace nsp {

Embedding::Embedding(ParamTable& table, const ModelSpec& spec)
    : segment_(table.add_segment("embedding")),
      wpe_(spec.is_llama() ? -1 : table.add("embedding.wpe", {spec.context, spec.hidden}, Role::embedding, {InitKind::normal, init_std})),
      wte_(table.add("embedding.wte", {spec.vocab, spec.hidden}, Role::embedding, {InitKind::normal, init_std}, spec.padded_vocab())) {}

void Embedding::forward(const ModelContext& context, const SegmentViews& segment, TensorView x) const {
  const MicroBatch& b = context.batch;
  if (wpe_ < 0)
    context.ops.embedding_forward(x, b.tokens, segment.weight(wte_));
  else
    context.ops.embedding_forward(x, b.tokens, segment.weight(wte_), b.positions, segment.weight(wpe_));
}

void Embedding::backward(const ModelContext& context, const SegmentViews& segment, TensorView gradient) const {
  const MicroBatch& b = context.batch;
  if (wpe_ < 0)
    context.ops.embedding_backward(gradient, b.tokens, segment.gradient(wte_));
  else
    context.ops.embedding_backward(gradient, b.tokens, segment.gradient(wte_), b.positions, segment.gradient(wpe_));
}

}  // namespace nsp
