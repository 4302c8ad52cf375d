// Generation with keys and values kept gives the tokens of generation without, on both families, with and without a window, and
// where the text is longer than the context.
#include <gtest/gtest.h>

#include <set>

#include "core/train/text_generator.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

struct Case {
  const char* name;
  const char* family;
  int64_t kv_heads, window, prompt;
  bool fake_device;
};

ModelSpec small(const Case& c) {
  ModelSpec spec = ModelSpec::of_family(c.family);
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = c.kv_heads;
  spec.vocab = 500;
  spec.context = 64;
  spec.window = c.window;
  return spec.completed();
}

// Deterministic weights that are large enough for the likeliest token to be clearly so.
void spread_weights(const Param& param, int64_t offset, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto word =
        static_cast<uint32_t>((offset + i + 1) * 2654435761u + param.name.size() * 40503u + static_cast<uint32_t>(param.segment) * 97u);
    const double u = static_cast<double>((word >> 8) % 100000) / 100000.0 - 0.5;
    out[i] = static_cast<float>(param.role == Role::norm ? 1.0 + 0.2 * u : param.role == Role::bias ? 0.1 * u : 0.5 * u);
  }
}

class WithCache : public testing::TestWithParam<Case> {};

TEST_P(WithCache, GivesTheSameTokens) {
  LocalSettings s = tiny_settings();
  s.spec = small(GetParam());
  s.weights = spread_weights;
  s.fake_device = GetParam().fake_device;
  s.train.steps = 1;
  bool ran = false;
  s.before = [&](TrainParts& parts) {
    BatchShape one = parts.plan.shape(0, {0, s.spec.heads, 0, s.spec.kv_heads}, false);
    one.micro_batch = 1;
    BatchLoader loader(parts.device, parts.stream, parts.wait, one, false, s.spec.vocab);
    TextGenerator plain(parts, loader), cached(parts, loader, TextGenerator::Cache::keys_and_values);
    std::vector<int32_t> prompt(static_cast<std::size_t>(GetParam().prompt));
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>((i * 37 + 11) % 500);
    for (const Sampling& sampling : {Sampling{.temperature = 0.0}, Sampling{.temperature = 1.0, .top_k = 20, .seed = 3}}) {
      const std::vector<int32_t> expected = plain.generate(prompt, 90, sampling);
      EXPECT_EQ(cached.generate(prompt, 90, sampling), expected) << "temperature " << sampling.temperature;
      EXPECT_EQ(cached.generate(prompt, 90, sampling), expected) << "a second time";  // nothing of the first is left
      if (sampling.temperature > 0) {
        EXPECT_GT(std::set<int32_t>(expected.begin(), expected.end()).size(), 10u);
      }
    }
    ran = true;
  };
  run_local(s);
  EXPECT_TRUE(ran);
}

INSTANTIATE_TEST_SUITE_P(Generate, WithCache,
                         testing::Values(Case{"Gpt2", "gpt2", 0, 0, 5, false}, Case{"Gpt2OnAFakeDevice", "gpt2", 0, 0, 5, true},
                                         Case{"Gpt2Window", "gpt2", 0, 7, 3, false}, Case{"Gpt2LongPrompt", "gpt2", 0, 0, 100, false},
                                         Case{"Llama", "llama", 4, 0, 5, false}, Case{"LlamaSharedKeys", "llama", 2, 0, 1, false},
                                         Case{"LlamaOneKeyWindow", "llama", 1, 9, 64, false}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Generate, ACacheRefusesMoreThanItsContext) {
  LocalSettings s = tiny_settings();
  s.train.steps = 1;
  s.before = [&](TrainParts& parts) {
    const ModelSpec& spec = parts.model.spec();
    KvCache cache(parts.device, spec, 4, DType::f32);
    EXPECT_EQ(KvCache::bytes(spec, 4, DType::f32), 2 * spec.layers * 4 * spec.kv_heads * spec.head_dim * 4);
    cache.advance(4);
    EXPECT_THROW(cache.advance(1), Error);
    cache.clear();
    EXPECT_EQ(cache.length(), 0);
  };
  run_local(s);
}

}  // namespace
}  // namespace nsp::test
