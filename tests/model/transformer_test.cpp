// The whole model against the double-precision reference, and what it promises about memory, order and bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/rig.hpp"
#include "tests/model/samples.hpp"

namespace nsp::test {
namespace {

constexpr double loss_tolerance = 1e-6, tolerance = 2e-5;

TEST(Transformer, TensorsAndSegments) {
  const ModelSpec spec = small_spec();
  const Transformer model(spec);
  const ParamTable& table = model.table();
  ASSERT_EQ(table.segments().size(), 4u);
  EXPECT_EQ(table.segment(model.embedding_segment()).name, "embedding");
  EXPECT_EQ(table.segment(model.block_segment(1)).name, "blocks.1");
  EXPECT_EQ(table.segment(model.head_segment()).name, "head");
  EXPECT_EQ(table.total(), spec.parameters());
  const auto shape = [&](const std::string& name) { return table.param(table.find(name)).shape; };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("blocks.1.attn.qkv.weight"), (Shape{36, 20}));
  EXPECT_EQ(shape("blocks.1.attn.proj.weight"), (Shape{20, 12}));
  EXPECT_EQ(shape("blocks.1.mlp.fc.bias"), (Shape{28}));
  EXPECT_EQ(shape("blocks.1.mlp.proj.weight"), (Shape{20, 28}));
  EXPECT_EQ(table.params()[0].name, "embedding.wpe");
  EXPECT_EQ(table.params()[1].name, "embedding.wte");  // last, since it is padded
  EXPECT_EQ(table.segment(0).storage - table.segment(0).size, (64 - 37) * 20);
  EXPECT_EQ(table.param(table.find("head.ln.weight")).role, Role::norm);
  EXPECT_EQ(table.param(table.find("head.ln.bias")).role, Role::bias);
  EXPECT_EQ(table.param(table.find("blocks.0.ln2.bias")).role, Role::bias);
  EXPECT_EQ(table.param(table.find("embedding.wpe")).role, Role::embedding);
}

TEST(Transformer, TensorsAndSegmentsOfAnUntiedLlama) {
  const ModelSpec spec = small_llama();
  const Transformer model(spec);
  const ParamTable& table = model.table();
  EXPECT_EQ(table.total(), spec.parameters());
  std::vector<std::string> names;
  for (const Param& p : table.params())
    if (p.segment != model.block_segment(1)) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"embedding.wte", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight",
                                             "blocks.0.attn.proj.weight", "blocks.0.norm2.weight", "blocks.0.mlp.gate_up.weight",
                                             "blocks.0.mlp.proj.weight", "head.norm.weight", "head.lm_head.weight"}));
  const auto shape = [&](const std::string& name) { return table.param(table.find(name)).shape; };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("blocks.1.attn.qkv.weight"), (Shape{(4 + 2 * 2) * 6, 20}));
  EXPECT_EQ(shape("blocks.1.mlp.gate_up.weight"), (Shape{2 * 28, 20}));
  EXPECT_EQ(shape("head.lm_head.weight"), (Shape{37, 20}));
  for (const int segment : {model.embedding_segment(), model.head_segment()})
    EXPECT_EQ(table.segment(segment).storage - table.segment(segment).size, (64 - 37) * 20) << "padding of segment " << segment;
  for (const Variant& variant : variants()) EXPECT_EQ(Transformer(variant.spec).table().total(), variant.spec.parameters()) << variant.name;
}

class TransformerFamilies : public testing::TestWithParam<Variant> {};

std::string variant_name(const testing::TestParamInfo<Variant>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Families, TransformerFamilies, testing::ValuesIn(variants()), variant_name);

TEST_P(TransformerFamilies, LossAndGradientsMatchTheReference) {
  for (const int64_t window : {0, 5})
    for (const bool documents : {true, false}) {
      SCOPED_TRACE("window " + std::to_string(window) + ", documents " + std::to_string(documents));
      std::mt19937 random(11);
      ModelSpec spec = GetParam().spec;
      spec.window = window;
      const Params params = random_params(spec, random);
      ReferenceBatch batch = random_batch(spec, 3, 13, random);
      if (!documents) batch.document_start.clear();
      const ReferenceResult want = reference_step(spec, params, batch, true);
      Rig rig;
      ModelRig model(rig, spec, params, 3, 16);
      EXPECT_NEAR(model.step(batch, true), want.loss_sum, loss_tolerance * want.loss_sum);
      expect_close(model.params().read_gradients(), want.gradients, tolerance);
      EXPECT_EQ(model.segments_done(), (std::vector<int>{3, 2, 1, 0}));
      EXPECT_NEAR(model.step(batch, false), want.loss_sum, loss_tolerance * want.loss_sum);
    }
}

TEST_P(TransformerFamilies, MicroStepsAddUp) {
  std::mt19937 random(12);
  const ModelSpec spec = GetParam().spec;
  const Params params = random_params(spec, random);
  const ReferenceBatch first = random_batch(spec, 3, 10, random), second = random_batch(spec, 1, 10, random);  // a smaller one fits too
  const ReferenceResult a = reference_step(spec, params, first, true), b = reference_step(spec, params, second, true);
  Rig rig;
  ModelRig model(rig, spec, params, 3, 10);
  EXPECT_NEAR(model.step(first, true), a.loss_sum, loss_tolerance * a.loss_sum);
  EXPECT_NEAR(model.step(second, true), b.loss_sum, loss_tolerance * b.loss_sum);
  Params want = a.gradients;
  for (auto& [name, value] : want)
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += b.gradients.at(name)[i];
  expect_close(model.params().read_gradients(), want, tolerance);
}

TEST(Transformer, EqualInputGivesEqualBits) {
  std::mt19937 random(13);
  const ModelSpec spec = small_spec();
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, 16, random);
  Rig rig(1), other(2);
  ModelRig a(rig, spec, params, 2, 16), b(other, spec, params, 4, 16);
  EXPECT_EQ(a.step(batch, true), b.step(batch, true));
  EXPECT_EQ(a.params().read_gradients(), b.params().read_gradients());
  a.params().zero_gradients();
  EXPECT_EQ(a.step(batch, true), b.step(batch, false));
  EXPECT_EQ(a.params().read_gradients(), b.params().read_gradients());
}

TEST_P(TransformerFamilies, VocabularyPaddingNeverMatters) {
  std::mt19937 random(14);
  const ModelSpec spec = GetParam().spec;
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, 8, random);
  Rig rig;
  ModelRig clean(rig, spec, params, 2, 8), poisoned(rig, spec, params, 2, 8, Head::default_logits_bytes, 1e4);
  EXPECT_EQ(clean.step(batch, true), poisoned.step(batch, true));
  EXPECT_EQ(clean.params().read_gradients(), poisoned.params().read_gradients());
  for (const int s : {poisoned.model().embedding_segment(), poisoned.model().head_segment()}) {
    const Values storage = poisoned.params().read_storage(s, true);
    const auto& segment = poisoned.model().table().segment(s);
    EXPECT_TRUE(std::all_of(storage.begin() + segment.size, storage.end(), [](double g) { return g == 0; })) << "padding gets no gradient";
  }
  EXPECT_EQ(clean.logits(batch, 5), poisoned.logits(batch, 5));
}

TEST_P(TransformerFamilies, PiecesOfLogitsGiveTheSameGradients) {
  std::mt19937 random(15);
  const ModelSpec spec = GetParam().spec;
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 3, 16, random);
  const ReferenceResult want = reference_step(spec, params, batch, true);
  Rig rig;
  ModelRig whole(rig, spec, params, 3, 16), pieces(rig, spec, params, 3, 16, 16 * spec.padded_vocab() * 4);
  EXPECT_NEAR(pieces.step(batch, true), want.loss_sum, loss_tolerance * want.loss_sum);
  expect_close(pieces.params().read_gradients(), want.gradients, tolerance);
  EXPECT_NEAR(pieces.step(batch, false), whole.step(batch, false), 1e-7 * want.loss_sum);
}

TEST(Transformer, DocumentsDoNotSeeEachOther) {
  std::mt19937 random(16);
  const ModelSpec spec = small_spec();
  const Params params = random_params(spec, random);
  ReferenceBatch batch = random_batch(spec, 1, 12, random);
  for (std::size_t t = 0; t < 12; ++t) batch.document_start[t] = t < 5 ? 0 : 5;
  Rig rig;
  ModelRig model(rig, spec, params, 1, 12);
  const Values before = model.logits(batch, 9);
  ReferenceBatch changed = batch;
  for (std::size_t t = 0; t < 5; ++t) changed.input[t] = (changed.input[t] + 1) % 37;
  EXPECT_EQ(model.logits(changed, 9), before);
  changed.document_start.clear();
  EXPECT_NE(model.logits(changed, 9), before);
}

TEST_P(TransformerFamilies, LogitsMatchTheReference) {
  std::mt19937 random(17);
  const ModelSpec spec = GetParam().spec;
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, 7, random);
  const ReferenceResult want = reference_step(spec, params, batch, false);
  Rig rig;
  ModelRig model(rig, spec, params, 2, 7);
  for (const int64_t row : {0, 6, 13}) {
    const Values part(want.logits.begin() + row * spec.vocab, want.logits.begin() + (row + 1) * spec.vocab);
    expect_close(model.logits(batch, row), part, tolerance, "row " + std::to_string(row));
  }
}

// A plan with sizes of our own.
ActivationPlanner plan_of(int64_t kept, int64_t scratch) {
  ActivationPlanner planner;
  planner.keep("all", DType::u8, kept);
  planner.begin_scratch("all", DType::u8, scratch);
  planner.end_scratch();
  return planner;
}

TEST_P(TransformerFamilies, TheDryPlanIsExact) {
  std::mt19937 random(18);
  ModelSpec spec = GetParam().spec;
  spec.vocab = 500;
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, 16, random);
  // Kept, by count: what a block's backward reads, the last residual stream, and the gradient.
  const auto aligned = [](int64_t elements) { return (elements * 4 + 255) / 256 * 256; };
  const int64_t n = 2 * 16, stream = aligned(n * spec.hidden), llama = spec.is_llama();
  const int64_t block = 2 * stream + 2 * aligned((llama ? 1 : 2) * n) + aligned(n * spec.qkv_width()) +
                        aligned(n * spec.attention_width()) + aligned(2 * spec.heads * 16) + aligned(n * (llama ? 2 : 1) * spec.ffn);
  // With logits as the largest scratch, then with backward of a block as the largest.
  for (const int64_t logits_bytes : {Head::default_logits_bytes, int64_t{256}}) {
    Rig rig;
    ModelRig model(rig, spec, params, 2, 16, logits_bytes);
    const int64_t kept = model.planner().kept_bytes(), scratch = model.planner().scratch_bytes();
    EXPECT_EQ(kept, spec.layers * block + 2 * stream);
    const TensorView loss = rig.tensor({1}, DType::f64);
    const auto run = [&](int64_t kept_bytes, int64_t scratch_bytes) {
      Workspace workspace(rig.device(), plan_of(kept_bytes, scratch_bytes));
      const ModelContext planned = model.context(batch, true);
      const ModelContext c{planned.ops, workspace, planned.strategy, planned.wait, planned.shape, planned.batch, true};
      ParamBuffers buffers(rig, model.model().table(), params);
      struct Synchronized {  // also when a step throws: nothing queued may use the workspace when it dies
        Rig& rig;
        ~Synchronized() { rig.synchronize(); }
      } synchronized{rig};
      model.model().forward(c, buffers, loss);
      model.model().backward(c, buffers, [](int) {});
    };
    EXPECT_NO_THROW(run(kept, scratch));
    EXPECT_THROW(run(kept, scratch - 1 - 255), Error);  // memory is dealt in units of 256 bytes
    EXPECT_THROW(run(kept - 1 - 255, scratch), Error);
  }
}

TEST(Transformer, FetchesAheadAndReleases) {
  std::mt19937 random(19);
  const ModelSpec spec = small_spec();
  Rig rig;
  ModelRig model(rig, spec, random_params(spec, random), 1, 4);
  model.step(random_batch(spec, 1, 4, random), true);
  const std::vector<std::string> want = {"prefetch embedding",  "prefetch blocks.0",   "weights embedding",  "release embedding",  //
                                         "prefetch blocks.1",   "weights blocks.0",    "release blocks.0",                         //
                                         "prefetch head",       "weights blocks.1",    "release blocks.1",                         //
                                         "weights head",        "weights embedding",   "prefetch blocks.1",  "gradients head",
                                         "gradients embedding",                                                                   //
                                         "release head",        "release embedding",                                              //
                                         "prefetch blocks.0",   "weights blocks.1",    "gradients blocks.1", "release blocks.1",  //
                                         "prefetch embedding",  "weights blocks.0",    "gradients blocks.0", "release blocks.0",  //
                                         "weights embedding",   "gradients embedding", "release embedding"};
  EXPECT_EQ(model.params().calls(), want);
}

TEST(Transformer, AnUntiedHeadLeavesTheEmbeddingAlone) {
  std::mt19937 random(20);
  const ModelSpec spec = small_llama();
  Rig rig;
  ModelRig model(rig, spec, random_params(spec, random), 1, 4);
  model.step(random_batch(spec, 1, 4, random), true);
  const std::vector<std::string>& calls = model.params().calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "weights embedding"), 2) << "forward and backward of the embedding itself";
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "gradients embedding"), 1);
}

}  // namespace
}  // namespace nsp::test
