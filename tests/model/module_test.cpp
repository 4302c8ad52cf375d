// Each module, forward and gradients, against the double-precision reference.
#include <gtest/gtest.h>

#include "core/model/attention.hpp"
#include "core/model/block.hpp"
#include "core/model/embedding.hpp"
#include "core/model/gated_mlp.hpp"
#include "core/model/head.hpp"
#include "core/model/linear.hpp"
#include "core/model/mlp.hpp"
#include "core/model/norm.hpp"
#include "tests/model/rig.hpp"
#include "tests/model/samples.hpp"

namespace nsp::test {
namespace {

constexpr double tolerance = 3e-6;  // fp32, sums of up to a few hundred terms
constexpr int64_t batch = 2, tokens = 9, rows = batch * tokens;

Params params_of(const ParamTable& table, std::mt19937& random) {
  Params params;
  for (const Param& p : table.params()) params[p.name] = normal_values(static_cast<std::size_t>(p.elements()), 0.5, random);
  return params;
}

// Gradient sums that are there before, so that "added to" is seen.
Params preload_gradients(Rig& rig, ParamBuffers& buffers, const ParamTable& table, std::mt19937& random) {
  for (std::size_t s = 0; s < table.segments().size(); ++s)
    rig.assign(buffers.gradient_storage(static_cast<int>(s)),
               normal_values(static_cast<std::size_t>(table.segments()[s].storage), 1, random));
  return buffers.read_gradients();
}

void expect_added(ParamBuffers& buffers, const Params& before, const Params& added) {
  Params want = before;
  for (const auto& [name, value] : added)
    for (std::size_t i = 0; i < value.size(); ++i) want.at(name)[i] += value[i];
  expect_close(buffers.read_gradients(), want, tolerance);
}

class ModuleTest : public ::testing::TestWithParam<Variant> {
 protected:
  // A context with memory for what `plan` declared.
  ModelContext context(const ActivationPlanner& planner, const MicroBatch& micro_batch, bool train = true) {
    workspace_ = std::make_unique<Workspace>(rig_.device(), planner);
    return {rig_.ops(), *workspace_, strategy_, rig_.wait(), whole_shape(spec_, batch, tokens), micro_batch, train};
  }
  template <class Part>
  void check_feed_forward(const Layer& reference);

  std::mt19937 random_{7};
  ModelSpec spec_ = GetParam().spec;
  Rig rig_;
  std::unique_ptr<Workspace> workspace_;
  WholeSequences strategy_;
};

std::string variant_name(const ::testing::TestParamInfo<Variant>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Families, ModuleTest, ::testing::ValuesIn(variants()), variant_name);

TEST_P(ModuleTest, Linear) {
  ParamTable table;
  table.add_segment("s");
  const Linear linear(table, "f", 12, 20, 0.02, spec_.qkv_bias);
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const Params before = preload_gradients(rig_, buffers, table, random_);
  const Values x = normal_values(rows * 12, 1, random_), dy = normal_values(rows * 20, 1, random_);
  const TensorView xd = rig_.upload(x, {rows, 12}), dyd = rig_.upload(dy, {rows, 20}), y = rig_.tensor({rows, 20}),
                   dx = rig_.tensor({rows, 12});
  linear.forward(rig_.ops(), buffers.views(0), y, xd);
  linear.backward(rig_.ops(), buffers.views(0), dx, dyd, xd);

  const Layer reference = linear_layer("f", rows, 12, 20);
  Params gradients;
  expect_close(rig_.download(y), reference.forward(params, x), tolerance, "y");
  expect_close(rig_.download(dx), reference.backward(params, x, dy, gradients), tolerance, "dx");
  expect_added(buffers, before, gradients);
}

TEST_P(ModuleTest, Norm) {
  ParamTable table;
  table.add_segment("s");
  const Norm norm(table, "f.", "1", spec_);
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const Params before = preload_gradients(rig_, buffers, table, random_);
  const Values x = normal_values(rows * 20, 1, random_), dy = normal_values(rows * 20, 1, random_),
               other = normal_values(rows * 20, 1, random_);
  const TensorView xd = rig_.upload(x, {rows, 20}), dyd = rig_.upload(dy, {rows, 20}), y = rig_.tensor({rows, 20});
  const TensorView dx = rig_.upload(other, {rows, 20}), statistics = rig_.tensor({norm.statistics(), rows});
  norm.forward(rig_.ops(), buffers.views(0), y, xd, statistics);
  norm.backward(rig_.ops(), buffers.views(0), dx, dyd, xd, statistics, true);

  const Layer reference =
      spec_.is_llama() ? rmsnorm_layer("f.norm1", rows, 20, spec_.norm_eps) : layernorm_layer("f.ln1", rows, 20, spec_.norm_eps);
  Params gradients;
  Values want = reference.backward(params, x, dy, gradients);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += other[i];
  expect_close(rig_.download(y), reference.forward(params, x), tolerance, "y");
  expect_close(rig_.download(dx), want, tolerance, "dx, accumulated");
  expect_added(buffers, before, gradients);
}

TEST_P(ModuleTest, Attention) {
  for (const int64_t window : {0, 4})
    for (const bool documents : {false, true}) {
      SCOPED_TRACE("window " + std::to_string(window) + ", documents " + std::to_string(documents));
      spec_.window = window;
      ParamTable table;
      table.add_segment("s");
      Attention attention(table, "f", spec_);
      ActivationPlanner planner;
      attention.plan(planner, "f", whole_shape(spec_, batch, tokens));
      attention.plan_forward(planner, whole_shape(spec_, batch, tokens));
      attention.plan_backward(planner, whole_shape(spec_, batch, tokens));
      const Params params = params_of(table, random_);
      ParamBuffers buffers(rig_, table, params);
      const Params before = preload_gradients(rig_, buffers, table, random_);
      ReferenceBatch b = random_batch(spec_, batch, tokens, random_);
      if (!documents) b.document_start.clear();
      const Values x = normal_values(rows * 20, 1, random_), dy = normal_values(rows * 20, 1, random_);
      const TensorView xd = rig_.upload(x, {rows, 20}), dyd = rig_.upload(dy, {rows, 20}), y = rig_.tensor({rows, 20}),
                       dx = rig_.tensor({rows, 20});
      const ModelContext c = context(planner, upload_batch(rig_, b));
      attention.forward(c, buffers.views(0), y, xd);
      attention.backward(c, buffers.views(0), dx, dyd, xd);

      const Layer reference = attention_layer("f", attention_shape(spec_, b), spec_.hidden);
      Params gradients;
      expect_close(rig_.download(y), reference.forward(params, x), tolerance, "y");
      expect_close(rig_.download(dx), reference.backward(params, x, dy, gradients), tolerance, "dx");
      expect_added(buffers, before, gradients);
    }
}

// The same for both feed-forward parts.
template <class Part>
void ModuleTest::check_feed_forward(const Layer& reference) {
  ParamTable table;
  table.add_segment("s");
  Part mlp(table, "f", spec_);
  ActivationPlanner planner;
  mlp.plan(planner, "f", whole_shape(spec_, batch, tokens));
  mlp.plan_forward(planner, whole_shape(spec_, batch, tokens));
  mlp.plan_backward(planner, whole_shape(spec_, batch, tokens));
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const Params before = preload_gradients(rig_, buffers, table, random_);
  const Values x = normal_values(rows * 20, 1, random_), dy = normal_values(rows * 20, 1, random_);
  const TensorView xd = rig_.upload(x, {rows, 20}), dyd = rig_.upload(dy, {rows, 20}), y = rig_.tensor({rows, 20}),
                   dx = rig_.tensor({rows, 20});
  const ModelContext c = context(planner, {});
  mlp.forward(c, buffers.views(0), y, xd);
  mlp.backward(c, buffers.views(0), dx, dyd, xd);

  Params gradients;
  expect_close(rig_.download(y), reference.forward(params, x), tolerance, "y");
  expect_close(rig_.download(dx), reference.backward(params, x, dy, gradients), tolerance, "dx");
  expect_added(buffers, before, gradients);
}

TEST_P(ModuleTest, FeedForward) {
  if (spec_.is_llama())
    check_feed_forward<GatedMlp>(gated_mlp_layer("f", rows, spec_.hidden, spec_.ffn));
  else
    check_feed_forward<Mlp>(mlp_layer("f", rows, spec_.hidden, spec_.ffn));
}

TEST_P(ModuleTest, Block) {
  ParamTable table;
  Block block(table, "f", spec_);
  ActivationPlanner planner;
  block.plan(planner, whole_shape(spec_, batch, tokens));
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const Params before = preload_gradients(rig_, buffers, table, random_);
  const ReferenceBatch b = random_batch(spec_, batch, tokens, random_);
  const Values x = normal_values(rows * 20, 1, random_), dy = normal_values(rows * 20, 1, random_);
  const TensorView xd = rig_.upload(x, {rows, 20}), gradient = rig_.upload(dy, {rows, 20}), y = rig_.tensor({rows, 20});
  const ModelContext c = context(planner, upload_batch(rig_, b));
  block.forward(c, buffers.views(0), y, xd);
  block.backward(c, buffers.views(0), gradient, xd);

  const Layer reference = block_layer("f", attention_shape(spec_, b), spec_.hidden, spec_.ffn, spec_.norm_eps);
  Params gradients;
  expect_close(rig_.download(y), reference.forward(params, x), tolerance, "y");
  expect_close(rig_.download(gradient), reference.backward(params, x, dy, gradients), tolerance, "dx");
  expect_added(buffers, before, gradients);
}

TEST_P(ModuleTest, Embedding) {
  ParamTable table;
  const Embedding embedding(table, spec_);
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const Params before = preload_gradients(rig_, buffers, table, random_);
  const ReferenceBatch b = random_batch(spec_, batch, tokens, random_);
  const std::size_t C = static_cast<std::size_t>(spec_.hidden);
  const Values dy = normal_values(rows * C, 1, random_);
  const TensorView x = rig_.tensor({rows, spec_.hidden}), dyd = rig_.upload(dy, {rows, spec_.hidden});
  const ModelContext c = context({}, upload_batch(rig_, b));
  embedding.forward(c, buffers.views(0), x);
  embedding.backward(c, buffers.views(0), dyd);

  Values want(rows * C);
  Params gradients;
  for (const auto& [name, value] : params) gradients[name] = Values(value.size());
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t i = 0; i < C; ++i) {
      const std::size_t token = static_cast<std::size_t>(b.input[n]) * C + i, position = static_cast<std::size_t>(b.position[n]) * C + i;
      want[n * C + i] = params.at("embedding.wte")[token];
      gradients["embedding.wte"][token] += dy[n * C + i];
      if (spec_.is_llama()) continue;
      want[n * C + i] += params.at("embedding.wpe")[position];
      gradients["embedding.wpe"][position] += dy[n * C + i];
    }
  expect_close(rig_.download(x), want, tolerance, "x");
  expect_added(buffers, before, gradients);
}

TEST_P(ModuleTest, HeadLossGradientsAndLogits) {
  ParamTable table;
  const Embedding embedding(table, spec_);
  const int64_t row_bytes = spec_.padded_vocab() * 4;
  const Head head(table, spec_, embedding.token_table(), 5 * row_bytes);  // pieces of 5, 5, 5, 3 rows
  ActivationPlanner planner;
  head.plan(planner, whole_shape(spec_, batch, tokens));
  const Params params = params_of(table, random_);
  ParamBuffers buffers(rig_, table, params);
  const ReferenceBatch b = random_batch(spec_, batch, tokens, random_);
  const Values x = normal_values(rows * 20, 1, random_);
  const TensorView xd = rig_.upload(x, {rows, 20}), gradient = rig_.tensor({rows, 20}), logits = rig_.tensor({1, spec_.padded_vocab()});
  const TensorView loss = rig_.tensor({1}, DType::f64);
  const SegmentViews head_views = buffers.views(head.segment()),
                     classifier_views = buffers.views(head.tied() ? embedding.segment() : head.segment());
  Params gradients;
  const HeadResult want = reference_head(spec_, params, x, b.target, &gradients);
  for (const auto& [name, value] : params) gradients[name].resize(value.size());  // the head leaves what it does not use alone

  const ModelContext evaluation = context(planner, upload_batch(rig_, b), false);
  rig_.ops().zero(loss);
  head.forward(evaluation, head_views, classifier_views, xd, gradient, loss);
  EXPECT_NEAR(rig_.download(loss)[0], want.loss_sum, 1e-4);
  for (const auto& [name, value] : buffers.read_gradients()) EXPECT_EQ(value, Values(value.size())) << name << " after an evaluation";
  head.logits(evaluation, head_views, classifier_views, xd, 7, logits);
  const Values row = rig_.download(logits);
  expect_close(Values(row.begin(), row.begin() + spec_.vocab),
               Values(want.logits.begin() + 7 * spec_.vocab, want.logits.begin() + 8 * spec_.vocab), tolerance, "logits");

  const Params before = preload_gradients(rig_, buffers, table, random_);
  const ModelContext training = context(planner, upload_batch(rig_, b), true);
  head.forward(training, head_views, classifier_views, xd, gradient, loss);
  EXPECT_NEAR(rig_.download(loss)[0], 2 * want.loss_sum, 2e-4) << "the loss is added to what is there";
  expect_close(rig_.download(gradient), want.dx, tolerance, "dx");
  expect_added(buffers, before, gradients);
}

// A head that works in pieces does what a head without pieces does on each piece: the same ops on the same shapes, hence the
// same bits. (One product over all rows may differ in the last bit, since matrix kernels choose their order by shape.)
TEST_P(ModuleTest, HeadInPiecesHasTheBitsOfItsPieces) {
  ParamTable table;
  const Embedding embedding(table, spec_);
  const int64_t piece = 3, row_bytes = spec_.padded_vocab() * 4;  // 18 rows in 6 pieces
  const Head cut(table, spec_, embedding.token_table(), piece * row_bytes);
  const Params params = params_of(table, random_);
  const ReferenceBatch b = random_batch(spec_, batch, tokens, random_);
  const TensorView x = rig_.upload(normal_values(rows * 20, 1, random_), {rows, 20});
  ActivationPlanner planner;
  cut.plan(planner, whole_shape(spec_, batch, tokens));
  const ModelContext all = context(planner, upload_batch(rig_, b));

  ParamBuffers in_pieces(rig_, table, params), one_by_one(rig_, table, params);
  const TensorView dx_pieces = rig_.tensor({rows, 20}), dx_single = rig_.tensor({rows, 20}), loss = rig_.tensor({2}, DType::f64);
  rig_.ops().zero(loss);
  const auto run = [&](const ModelContext& c, ParamBuffers& buffers, int64_t lo, int64_t hi, TensorView dx, TensorView sum) {
    cut.forward(c, buffers.views(cut.segment()), buffers.views(cut.tied() ? embedding.segment() : cut.segment()), x.rows(lo, hi),
                dx.rows(lo, hi), sum);
  };
  run(all, in_pieces, 0, rows, dx_pieces, loss.slice(0, 1));
  for (int64_t lo = 0; lo < rows; lo += piece) {
    MicroBatch part = all.batch;
    part.targets = part.targets.rows(lo, lo + piece);
    run({all.ops, all.workspace, all.strategy, all.wait, whole_shape(spec_, 1, piece), part, true}, one_by_one, lo, lo + piece, dx_single,
        loss.slice(1, 2));
  }
  EXPECT_EQ(rig_.download(dx_pieces), rig_.download(dx_single));
  const std::string classifier = cut.tied() ? "embedding.wte" : "head.lm_head.weight";
  EXPECT_EQ(in_pieces.read_gradients().at(classifier), one_by_one.read_gradients().at(classifier));
  const Values sums = rig_.download(loss);
  EXPECT_NEAR(sums[0], sums[1], 1e-12 * sums[0]);  // fp64, summed in another order
}

}  // namespace
}  // namespace nsp::test
