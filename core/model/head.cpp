#include "core/model/head.hpp"

#include <algorithm>
#include <optional>

#include "core/model/init.hpp"

namespace nsp {
// A multiple of 16: matrix kernels work on tiles of rows.
int64_t Head::rows_of_a_piece(int64_t logits_bytes, int64_t padded_vocab) noexcept {
  const int64_t rows = logits_bytes / (padded_vocab * static_cast<int64_t>(size_of(DType::f32)));
  return rows >= 16 ? rows / 16 * 16 : std::max<int64_t>(rows, 1);
}

Head::Head(ParamTable& table, const ModelSpec& spec, int wte, int64_t logits_bytes)
    : segment_(table.add_segment("head")),
      hidden_(spec.hidden),
      vocab_(spec.vocab),
      padded_vocab_(spec.padded_vocab()),
      piece_rows_(rows_of_a_piece(logits_bytes, spec.padded_vocab())),
      norm_(table, "head.", "", spec),
      tied_(spec.tied),
      table_(spec.tied ? wte
                       : table.add("head.lm_head.weight", {spec.vocab, spec.hidden}, Role::embedding, {InitKind::normal, init_std},
                                   spec.padded_vocab())) {}

void Head::plan(ActivationPlanner& planner, const BatchShape& largest) const {
  const int64_t n = largest.rows();
  {
    PlannedScratch statistics(planner, "head statistics", DType::f32, norm_.statistics() * n), losses(planner, "losses", DType::f32, n);
    const int64_t logits_elements = std::min(piece_rows_, n) * padded_vocab_;
    PlannedScratch logits(planner, "logits", DType::f32, logits_elements);
    if (largest.dtype != DType::f32) PlannedScratch rounded(planner, "logits gradient", largest.dtype, logits_elements);
  }
  PlannedScratch normalized(planner, "normalized row", largest.dtype, hidden_),
      statistics(planner, "head statistics", DType::f32, norm_.statistics());
}

void Head::forward(const ModelContext& context, const SegmentViews& head, const SegmentViews& classifier, TensorView x, TensorView gradient,
                   TensorView loss_sum) const {
  const int64_t n = context.shape.rows();
  const Ops& ops = context.ops;
  Workspace::Scratch statistics(context.workspace, "head statistics", DType::f32, {norm_.statistics(), n});
  Workspace::Scratch losses(context.workspace, "losses", DType::f32, {n});
  Workspace::Scratch logits(context.workspace, "logits", DType::f32, {std::min(piece_rows_, n), padded_vocab_});
  std::optional<Workspace::Scratch> rounded;
  if (context.train && x.dtype() != DType::f32)
    rounded.emplace(context.workspace, "logits gradient", x.dtype(),
                    std::initializer_list<int64_t>{std::min(piece_rows_, n), padded_vocab_});
  const TensorView table = classifier.weight(table_, true);
  norm_.forward(ops, head, gradient, x, statistics.view());
  for (int64_t lo = 0; lo < n; lo += piece_rows_) {
    const int64_t hi = std::min(n, lo + piece_rows_);
    const TensorView piece = logits.view().rows(0, hi - lo), normalized = gradient.rows(lo, hi);
    ops.matmul(piece, normalized, table, {.transpose_b = true});
    ops.classifier(piece, context.batch.targets.rows(lo, hi), losses.view().rows(lo, hi), vocab_, 1.0f, context.train);
    if (context.train) {
      const TensorView dlogits = rounded ? rounded->view().rows(0, hi - lo) : piece;
      if (rounded) ops.cast(dlogits.reshape({dlogits.elements()}), piece.reshape({piece.elements()}));
      ops.matmul(classifier.gradient(table_, true), dlogits, normalized, {.transpose_a = true, .accumulate = true});
      ops.matmul(normalized, dlogits, table, {});  // from here on these rows are the gradient of the norm's output
    }
    context.wait.progress();
  }
  ops.sum(loss_sum, losses.view(), true);
  if (context.train) norm_.backward(ops, head, gradient, gradient, x, statistics.view(), false);
}

void Head::logits(const ModelContext& context, const SegmentViews& head, const SegmentViews& classifier, TensorView x, int64_t row,
                  TensorView out) const {
  Workspace::Scratch normalized(context.workspace, "normalized row", x.dtype(), {1, hidden_});
  Workspace::Scratch statistics(context.workspace, "head statistics", DType::f32, {norm_.statistics(), 1});
  norm_.forward(context.ops, head, normalized.view(), x.rows(row, row + 1), statistics.view());
  context.ops.matmul(out, normalized.view(), classifier.weight(table_, true), {.transpose_b = true});
}

}  // namespace nsp
