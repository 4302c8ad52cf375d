// The Llama family on several ranks: heads, key/value heads and tokens cut in every way give the training of one rank.
#include <gtest/gtest.h>

#include "tests/train/compare_runs.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

LocalSettings llama(int64_t kv_heads, int steps) {
  LocalSettings s = tiny_settings();
  s.spec = ModelSpec::of_family("llama");
  s.spec.layers = 2;
  s.spec.hidden = 48;
  s.spec.heads = 8;
  s.spec.kv_heads = kv_heads;
  s.spec.head_dim = 8;
  s.spec.ffn = 80;
  s.spec.vocab = 500;
  s.spec.context = 64;
  s.weights = {};
  s.train.clip = 1.0;
  s.train.steps = steps;
  return s;
}

// Losses, every gradient of the first step, and bytes that are those of the plan.
void expect_equal_at(const LocalSettings& one, const std::vector<int>& degrees, bool fake) {
  GradientRecorder of_one;
  const LocalResult a = run_recorded(one, of_one);
  for (const int degree : degrees) {
    SCOPED_TRACE("degree " + std::to_string(degree));
    LocalSettings many = with_autosp(one, degree);
    many.fake_device = fake;
    GradientRecorder of_many;
    const LocalResult b = run_recorded(many, of_many);
    expect_losses(a, b, 1e-5);
    expect_close_gradients(of_one, of_many, 1e-5);
    for (const uint64_t hash : b.weight_hashes) EXPECT_EQ(hash, b.weight_hashes[0]);
    const double planned = b.planned.links.replica().total();
    for (const std::string& metrics : b.metrics) {
      if (metrics.find("\"kind\":\"step\"") == std::string::npos) continue;
      EXPECT_EQ(json_number(metrics, "replica_bytes"), planned);
    }
  }
}

class LlamaGroups : public testing::TestWithParam<int> {};

TEST_P(LlamaGroups, AnyDegreeTrainsAsOneRank) {
  expect_equal_at(llama(GetParam(), 3), {2, 4}, false);
}

INSTANTIATE_TEST_SUITE_P(KeyValueHeads, LlamaGroups, testing::Values(1, 2, 8));

TEST(LlamaEquivalence, UnevenGroupsAndReplicasOnFakeDevices) {
  expect_equal_at(llama(2, 2), {3, 4}, true);
}

TEST(LlamaEquivalence, TiedWithBiasAndWindowOverThreeRanks) {
  LocalSettings s = llama(4, 3);
  s.spec.tied = s.spec.qkv_bias = true;
  s.spec.window = 20;
  expect_equal_at(s, {3}, false);
}

TEST(LlamaEquivalence, GPT2WithGroupsAndAHeadOfItsOwnOverThreeRanks) {
  LocalSettings s = llama(2, 3);
  s.spec.family = "gpt2";
  expect_equal_at(s, {3}, false);
}

struct ResumeCase {
  const char* sync;
  int replicas, degree;
};
class LlamaResume : public testing::TestWithParam<ResumeCase> {};

TEST_P(LlamaResume, TwoHalvesAreTheWholeBitForBit) {
  const ResumeCase c = GetParam();
  LocalSettings s = llama(2, 8);
  s.ranks = c.replicas;
  s.sync = c.sync;
  s.shuffle = true;
  if (s.sync == "desloc") s.options = {{"desloc.kx", "2"}, {"desloc.ku", "3"}, {"desloc.kv", "5"}};
  expect_resume_is_whole(with_autosp(s, c.degree), 4);
}

INSTANTIATE_TEST_SUITE_P(Layouts, LlamaResume, testing::Values(ResumeCase{"ddp", 2, 1}, ResumeCase{"desloc", 2, 3}));

}  // namespace
}  // namespace nsp::test
