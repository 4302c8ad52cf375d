#include "core/model/head.hpp"

#include <algorithm>

namespace nsp {
namespace {

// A multiple of 16 where it can be: matrix kernels work on tiles of rows.
int64_t rows_of_a_piece(int64_t logits_bytes, int64_t padded_vocab) {
  const int64_t rows = logits_bytes / (padded_vocab * static_cast<int64_t>(size_of(DType::f32)));
  return rows >= 16 ? rows / 16 * 16 : std::max<int64_t>(rows, 1);
}

}  // namespace

Head::Head(ParamTable& table, const ModelSpec& spec, int wte, int64_t logits_bytes)
    : segment_(table.add_segment("head")),
      hidden_(spec.hidden),
      vocab_(spec.vocab),
      padded_vocab_(spec.padded_vocab()),
      piece_rows_(rows_of_a_piece(logits_bytes, spec.padded_vocab())),
      ln_(table, "head.ln", spec.hidden, spec.norm_eps),
      wte_(wte) {}

void Head::plan(ActivationPlanner& planner, const BatchShape& largest) const {
  const int64_t n = largest.rows();
  {
    PlannedScratch mean(planner, "head mean", n), rstd(planner, "head rstd", n), losses(planner, "losses", n);
    PlannedScratch logits(planner, "logits", std::min(piece_rows_, n) * padded_vocab_);
  }
  PlannedScratch normalized(planner, "normalized row", hidden_), mean(planner, "head mean", 1), rstd(planner, "head rstd", 1);
}

void Head::forward(const ModelContext& context, const SegmentViews& head, const SegmentViews& embedding, TensorView x, TensorView gradient,
                   TensorView loss_sum) const {
  const int64_t n = context.shape.rows();
  const Ops& ops = context.ops;
  Workspace::Scratch mean(context.workspace, "head mean", DType::f32, {n}), rstd(context.workspace, "head rstd", DType::f32, {n});
  Workspace::Scratch losses(context.workspace, "losses", DType::f32, {n});
  Workspace::Scratch logits(context.workspace, "logits", DType::f32, {std::min(piece_rows_, n), padded_vocab_});
  const TensorView wte = embedding.weight(wte_, true);
  ln_.forward(ops, head, gradient, x, mean.view(), rstd.view());
  for (int64_t lo = 0; lo < n; lo += piece_rows_) {
    const int64_t hi = std::min(n, lo + piece_rows_);
    const TensorView piece = logits.view().rows(0, hi - lo), normalized = gradient.rows(lo, hi);
    ops.matmul(piece, normalized, wte, {.transpose_b = true});
    ops.classifier(piece, context.batch.targets.rows(lo, hi), losses.view().rows(lo, hi), vocab_, 1.0f, context.train);
    if (context.train) {
      ops.matmul(embedding.gradient(wte_, true), piece, normalized, {.transpose_a = true, .accumulate = true});
      ops.matmul(normalized, piece, wte, {});  // from here on these rows are the gradient of the norm's output
    }
    context.wait.progress();
  }
  ops.sum(loss_sum, losses.view(), true);
  if (context.train) ln_.backward(ops, head, gradient, gradient, x, mean.view(), rstd.view(), false);
}

void Head::logits(const ModelContext& context, const SegmentViews& head, const SegmentViews& embedding, TensorView x, int64_t row,
                  TensorView out) const {
  Workspace::Scratch normalized(context.workspace, "normalized row", DType::f32, {1, hidden_});
  Workspace::Scratch mean(context.workspace, "head mean", DType::f32, {1}), rstd(context.workspace, "head rstd", DType::f32, {1});
  ln_.forward(context.ops, head, normalized.view(), x.rows(row, row + 1), mean.view(), rstd.view());
  context.ops.matmul(out, normalized.view(), embedding.weight(wte_, true), {.transpose_b = true});
}

}  // namespace nsp
