// Sizes: what follows from them, and what is refused with which words.
#include "core/model/spec.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/model/transformer.hpp"

namespace nsp {
namespace {

ModelSpec gpt2_124m() {
  ModelSpec spec;
  spec.layers = 12;
  spec.hidden = 768;
  spec.heads = 12;
  spec.vocab = 50257;
  spec.context = 1024;
  return spec;
}

TEST(ModelSpec, Gpt2Sizes) {
  const ModelSpec spec = gpt2_124m().completed();
  EXPECT_EQ(spec.head_dim, 64);
  EXPECT_EQ(spec.ffn, 3072);
  EXPECT_EQ(spec.padded_vocab(), 50304);
  EXPECT_EQ(spec.parameters(), 124439808);  // the published model
  EXPECT_EQ(Transformer(gpt2_124m()).table().total(), 124439808);
}

ModelSpec llama_7b() {
  ModelSpec spec = ModelSpec::of_family("llama");
  spec.layers = 32;
  spec.hidden = 4096;
  spec.heads = 32;
  spec.vocab = 32000;
  spec.context = 2048;
  return spec;
}

TEST(ModelSpec, LlamaSizes) {
  const ModelSpec spec = llama_7b().completed();
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_EQ(spec.kv_heads, 32);
  EXPECT_EQ(spec.ffn, 11008);
  EXPECT_FALSE(spec.tied);
  EXPECT_FALSE(spec.qkv_bias);
  EXPECT_EQ(spec.parameters(), 6738415616);  // the published model
}

TEST(ModelSpec, FlopsLeaveOutWhatIsOnlyLookedUp) {
  ModelSpec spec = llama_7b().completed();
  const double attention = 12.0 * 32 * 4096 * 2049 / 2;
  EXPECT_DOUBLE_EQ(spec.flops_per_token(2048), 6.0 * (6738415616.0 - 32000.0 * 4096) + attention);
  spec.tied = true;
  EXPECT_DOUBLE_EQ(spec.flops_per_token(2048), 6.0 * (6738415616.0 - 32000.0 * 4096) + attention) << "one table, and it is the head's";
  spec.kv_heads = 8;
  EXPECT_DOUBLE_EQ(spec.flops_per_token(2048), 6.0 * (6738415616.0 - 32000.0 * 4096 - 32.0 * 2 * 24 * 128 * 4096) + attention);
}

TEST(ModelSpec, PaddingToSixtyFour) {
  ModelSpec spec = gpt2_124m();
  for (const auto& [vocab, padded] : {std::pair<int64_t, int64_t>{1, 64}, {64, 64}, {65, 128}, {500, 512}}) {
    spec.vocab = vocab;
    EXPECT_EQ(spec.padded_vocab(), padded);
  }
}

TEST(ModelSpec, FlopsCountSeenKeys) {
  ModelSpec spec = gpt2_124m().completed();
  const double matrices = 6.0 * (124439808.0 - 1024 * 768);
  EXPECT_DOUBLE_EQ(spec.flops_per_token(1024), matrices + 12.0 * 12 * 768 * 1025 / 2);
  EXPECT_DOUBLE_EQ(spec.flops_per_token(1), matrices + 12.0 * 12 * 768);
  spec.window = 4;  // 1, 2, 3, 4, 4, 4: 18 keys for 6 queries
  EXPECT_DOUBLE_EQ(spec.flops_per_token(6), matrices + 12.0 * 12 * 768 * 3);
  spec.window = 100;
  EXPECT_DOUBLE_EQ(spec.flops_per_token(3), matrices + 12.0 * 12 * 768 * 2);
}

std::string refusal(const std::function<void(ModelSpec&)>& change) {
  ModelSpec spec = gpt2_124m();
  change(spec);
  try {
    spec.completed();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(ModelSpec, RefusalsNameTheKey) {
  const auto starts = [](const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; };
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.heads = 7; }), "model.heads = 7 does not divide model.hidden = 768.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.layers = 0; }), "model.layers = 0 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.hidden = -1; }), "model.hidden = -1 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.heads = 0; }), "model.heads = 0 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.head_dim = -2; }), "model.head_dim = -2 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.ffn = -4; }), "model.ffn = -4 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.vocab = 0; }), "model.vocab = 0 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.vocab = int64_t{1} << 40; }), "model.vocab = 1099511627776 is too large.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.context = 0; }), "model.context = 0 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.window = -1; }), "model.window = -1 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.norm_eps = 0; }), "model.norm_eps = ");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.family = "bert"; }), "model.family = bert is not known.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.kv_heads = 5; }), "model.kv_heads = 5 does not divide model.heads = 12.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.kv_heads = -1; }), "model.kv_heads = -1 cannot be.");
  EXPECT_PRED2(starts, refusal([](ModelSpec& s) { s.rope_theta = 0; }), "model.rope_theta = ");
  EXPECT_PRED2(starts,
               refusal([](ModelSpec& s) { s = ModelSpec::of_family("llama"), s.layers = s.hidden = s.heads = 3, s.vocab = s.context = 9; }),
               "model.head_dim = 1 is odd.");
}

TEST(ModelSpec, HeadSizeNeedNotDivideHidden) {
  ModelSpec spec = gpt2_124m();
  spec.heads = 7;
  spec.head_dim = 32;
  EXPECT_EQ(spec.completed().attention_width(), 224);
}

}  // namespace
}  // namespace nsp
