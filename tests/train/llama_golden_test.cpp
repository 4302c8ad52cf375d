// Twenty whole training steps of a tiny Llama against Hugging Face transformers and torch's AdamW in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/model/llama_tiny.hpp"
#include "tests/train/local_job.hpp"

namespace nsp::test {
namespace {

// The batches of the reference in their order: window i is sequence i % B of step i / B.
class ReferenceBatches : public DataSource {
 public:
  explicit ReferenceBatches(const LlamaTiny& tiny) : tiny_(tiny) {}
  int64_t samples() const override { return LlamaTiny::steps * LlamaTiny::batch; }
  int64_t context() const override { return LlamaTiny::tokens; }
  int64_t vocabulary() const override { return tiny_.spec.vocab; }
  const std::string& tokenizer() const override { return name_; }
  const std::string& fingerprint() const override { return name_; }
  double bytes_per_token() const override { return 1; }
  void read(int64_t sample, int32_t* tokens, int32_t*) override {
    const auto step = static_cast<std::size_t>(sample / LlamaTiny::batch);
    const int64_t first = sample % LlamaTiny::batch * LlamaTiny::tokens;
    std::copy_n(tiny_.inputs.at(step).begin() + first, LlamaTiny::tokens, tokens);
    tokens[LlamaTiny::tokens] = tiny_.targets.at(step).at(static_cast<std::size_t>(first + LlamaTiny::tokens - 1));
  }

 private:
  const LlamaTiny& tiny_;
  const std::string name_ = "llama_tiny";
};

LocalSettings settings(const LlamaTiny& tiny) {
  LocalSettings s;
  s.spec = tiny.spec;
  s.context = LlamaTiny::tokens;
  s.global_batch = LlamaTiny::batch;
  s.options = {{"adamw.beta1", "0.9"}, {"adamw.beta2", "0.95"}, {"adamw.eps", "1e-8"}, {"adamw.weight_decay", "0.1"}};
  s.train.steps = LlamaTiny::steps;
  s.train.clip = 1.0;
  s.train.eval_every = s.train.checkpoint_every = s.train.verify_every = 0;
  s.train.schedule.kind = ScheduleKind::constant;
  s.train.schedule.peak = 1e-3;
  s.train.schedule.warmup = 0;
  s.weights = [&tiny](const Param& param, int64_t offset, int64_t count, float* out) {
    const Values& values = tiny.parameters.at(param.name);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[static_cast<std::size_t>(offset + i)]);
  };
  s.train_data = [&tiny] { return std::make_unique<ReferenceBatches>(tiny); };
  return s;
}

void expect_reference(const LlamaTiny& tiny, const LocalResult& result) {
  ASSERT_EQ(result.losses.size(), tiny.losses.size());
  for (std::size_t t = 0; t < tiny.losses.size(); ++t) {
    EXPECT_NEAR(result.losses[t][0], tiny.losses[t], 1e-4 * tiny.losses[t]) << "step " << t;
    EXPECT_NEAR(result.norms[t][0], tiny.grad_norms[t], 1e-4 * tiny.grad_norms[t]) << "step " << t;
  }
  for (const auto& [name, want] : tiny.parameters_after) {
    const std::vector<float>& got = result.model.at(name);
    ASSERT_EQ(got.size(), want.size()) << name;
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
    EXPECT_LE(worst, 1e-4) << name;
  }
}

TEST(LlamaGolden, TwentyAdamWSteps) {
  const LlamaTiny tiny = read_llama_tiny();
  expect_reference(tiny, run_local(settings(tiny)));
}

// In bf16, on one rank and on two: bounds and reasons in docs/numerics.md.
TEST(LlamaGolden, TwentyAdamWStepsInBf16) {
  const LlamaTiny tiny = read_llama_tiny();
  for (const int degree : {1, 2}) {
    LocalSettings s = settings(tiny);
    s.dtype = DType::bf16;
    const LocalResult result = run_local(with_autosp(s, degree));
    ASSERT_EQ(result.losses.size(), tiny.losses.size());
    for (std::size_t t = 0; t < tiny.losses.size(); ++t) {
      EXPECT_NEAR(result.losses[t][0], tiny.losses[t], 3e-4 * tiny.losses[t]) << "step " << t << ", degree " << degree;
      EXPECT_NEAR(result.norms[t][0], tiny.grad_norms[t], 1e-2 * tiny.grad_norms[t]) << "step " << t << ", degree " << degree;
    }
  }
}

// Three ranks share each sequence: 4 query heads and 2 key/value heads, one of which two ranks hold.
TEST(LlamaGolden, TwentyAdamWStepsOnThreeRanksOfOneReplica) {
  const LlamaTiny tiny = read_llama_tiny();
  expect_reference(tiny, run_local(with_autosp(settings(tiny), 3)));
}

}  // namespace
}  // namespace nsp::test
