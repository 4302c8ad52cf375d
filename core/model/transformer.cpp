#include "core/model/transformer.hpp"

#include "core/model/kv_cache.hpp"

namespace nsp {
namespace {

void check_shape(const ModelContext& context, const ModelSpec& spec) {
  const BatchShape& s = context.shape;
  NSP_REQUIRE(s.splits_heads == context.strategy.splits_heads(), "the shape and the strategy agree on splitting heads");
  NSP_REQUIRE(s.splits_heads || (s.local_tokens == s.tokens && s.local_heads == spec.heads),
              "without a split this rank has all of each sequence");
  NSP_REQUIRE(s.local_kv_heads >= 1 && s.local_heads % s.local_kv_heads == 0, "local query heads come in whole groups");
  NSP_REQUIRE(s.tokens <= spec.context, "a sequence is no longer than the model's context");
  NSP_REQUIRE(context.batch.tokens.elements() == s.rows() && context.batch.positions.elements() == s.rows(),
              "a token and a position for each row");
}

}  // namespace

Transformer::Transformer(const ModelSpec& spec, int64_t logits_bytes)
    : spec_(spec.completed()),
      embedding_(table_, spec_),
      blocks_([this] {
        std::vector<Block> blocks;
        for (int64_t l = 0; l < spec_.layers; ++l) blocks.emplace_back(table_, "blocks." + std::to_string(l), spec_, l);
        return blocks;
      }()),
      head_(table_, spec_, embedding_.token_table(), logits_bytes) {}

void Transformer::plan(ActivationPlanner& planner, const BatchShape& largest) {
  residual_.clear();
  for (int64_t l = 0; l <= spec_.layers; ++l) {
    residual_.push_back(planner.keep("residual." + std::to_string(l), largest.dtype, largest.rows() * spec_.hidden));
    if (l < spec_.layers) blocks_[static_cast<std::size_t>(l)].plan(planner, largest);
  }
  gradient_ = planner.keep("residual gradient", largest.dtype, largest.rows() * spec_.hidden);
  head_.plan(planner, largest);
}

TensorView Transformer::residual(const ModelContext& context, int64_t layer) const {
  return context.workspace.kept(residual_[static_cast<std::size_t>(layer)], context.shape.dtype, {context.shape.rows(), spec_.hidden});
}

void Transformer::trunk(const ModelContext& context, ParamAccess& params) {
  check_shape(context, spec_);
  params.prefetch(embedding_segment());
  params.prefetch(embedding_segment() + 1);
  embedding_.forward(context, {table_, params.weights(embedding_segment()), {}}, residual(context, 0));
  params.release(embedding_segment(), false);
  context.wait.progress();
  for (int64_t l = 0; l < spec_.layers; ++l) {
    const int segment = block_segment(l);
    params.prefetch(segment + 1);
    blocks_[static_cast<std::size_t>(l)].forward(context, {table_, params.weights(segment), {}}, residual(context, l + 1),
                                                 residual(context, l));
    params.release(segment, false);
  }
}

void Transformer::forward(const ModelContext& context, ParamAccess& params, TensorView loss_sum) {
  trunk(context, params);
  const int head = head_segment(), embedding = embedding_segment();
  SegmentViews head_views{table_, params.weights(head), {}}, classifier = head_views;
  if (head_.tied()) classifier.weights = params.weights(embedding);
  if (context.train) {
    params.prefetch(block_segment(spec_.layers - 1));
    classifier.gradients = head_views.gradients = params.gradients(head);
    if (head_.tied()) classifier.gradients = params.gradients(embedding);
  }
  const TensorView gradient = context.workspace.kept(gradient_, context.shape.dtype, {context.shape.rows(), spec_.hidden});
  head_.forward(context, head_views, classifier, residual(context, spec_.layers), gradient, loss_sum);
  params.release(head, context.train);
  if (head_.tied()) params.release(embedding, context.train);
}

void Transformer::backward(const ModelContext& context, ParamAccess& params, const std::function<void(int segment)>& segment_done) {
  NSP_REQUIRE(context.train, "backward follows a forward that trained");
  const TensorView gradient = context.workspace.kept(gradient_, context.shape.dtype, {context.shape.rows(), spec_.hidden});
  segment_done(head_segment());
  for (int64_t l = spec_.layers - 1; l >= 0; --l) {
    const int segment = block_segment(l);
    params.prefetch(segment - 1);
    const TensorView weights = params.weights(segment);
    blocks_[static_cast<std::size_t>(l)].backward(context, {table_, weights, params.gradients(segment)}, gradient, residual(context, l));
    params.release(segment, true);
    segment_done(segment);
  }
  const int embedding = embedding_segment();
  const TensorView weights = params.weights(embedding);
  embedding_.backward(context, {table_, weights, params.gradients(embedding)}, gradient);
  params.release(embedding, true);
  segment_done(embedding);
}

void Transformer::logits(const ModelContext& context, ParamAccess& params, int64_t row, TensorView out) {
  NSP_REQUIRE(context.cache == nullptr || (!context.train && !context.shape.splits_heads && context.shape.micro_batch == 1),
              "a cache serves one sequence on one rank");
  trunk(context, params);
  if (context.cache != nullptr) context.cache->advance(context.shape.rows());
  const SegmentViews head{table_, params.weights(head_segment()), {}};
  const SegmentViews classifier{table_, head_.tied() ? params.weights(embedding_segment()) : head.weights, {}};
  head_.logits(context, head, classifier, residual(context, spec_.layers), row, out);
  params.release(head_segment(), false);
  if (head_.tied()) params.release(embedding_segment(), false);
}

}  // namespace nsp
