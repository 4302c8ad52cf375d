// A model as one line of a checkpoint, and back.
#include "core/app/model_source.hpp"

#include <gtest/gtest.h>

#include "core/config/presets.hpp"

namespace nsp {
namespace {

TEST(SpecText, ReadsBack) {
  ModelSpec spec = ModelSpec::of_family("llama");
  spec.layers = 2;
  spec.hidden = 48;
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.vocab = 100;
  spec.context = 32;
  spec.rope_theta = 500000.1;
  spec.norm_eps = 1e-6;
  spec.window = 16;
  for (const bool other : {false, true}) {
    spec.tied = other;
    spec.qkv_bias = !other;
    EXPECT_EQ(parse_spec(spec_text(spec.completed())), spec.completed());
  }
}

TEST(SpecText, OfTheFirstVersionIsStillRead) {
  const ModelSpec spec = parse_spec(
      "family=gpt2 layers=2 hidden=64 heads=4 head_dim=16 ffn=256 vocab=500 context=64 norm_eps=1.0000000000000001e-05 window=0");
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_TRUE(spec.tied);
  EXPECT_TRUE(spec.qkv_bias);
  EXPECT_EQ(spec, spec.completed());
  EXPECT_THROW(parse_spec("family=gpt2 layers=2"), Error);
  EXPECT_THROW(parse_spec("family=bert layers=2"), Error);
}

TEST(Families, ConfigurationAndModelAgreeOnWhatFollowsFromThem) {
  for (const char* family : {"gpt2", "llama"}) {
    const std::map<std::string, std::string> values = family_values(family);
    EXPECT_EQ(parse::flag(values.at("model.tied")), ModelSpec::of_family(family).tied) << family;
    EXPECT_EQ(parse::flag(values.at("model.qkv_bias")), ModelSpec::of_family(family).qkv_bias) << family;
  }
}

}  // namespace
}  // namespace nsp
