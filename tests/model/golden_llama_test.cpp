// A tiny Llama against Hugging Face transformers in float64: logits and gradients of one batch.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/llama_tiny.hpp"
#include "tests/model/rig.hpp"

namespace nsp::test {
namespace {

ReferenceBatch first_batch(const LlamaTiny& tiny) {
  ReferenceBatch batch;
  batch.batch = LlamaTiny::batch;
  batch.tokens = LlamaTiny::tokens;
  batch.input = tiny.inputs.at(0);
  batch.target = tiny.targets.at(0);
  for (std::size_t i = 0; i < batch.input.size(); ++i) batch.position.push_back(static_cast<int32_t>(i) % LlamaTiny::tokens);
  return batch;
}

double relative_l2(const Values& got, const Values& want) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got.at(i) - want[i]) * (got.at(i) - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / norm);
}

TEST(GoldenLlama, LogitsMatchTheReference) {
  const LlamaTiny tiny = read_llama_tiny();
  const ReferenceBatch batch = first_batch(tiny);
  Rig rig;
  ModelRig model(rig, tiny.spec, tiny.parameters, LlamaTiny::batch, LlamaTiny::tokens);
  double worst = 0;
  for (int64_t row = 0; row < LlamaTiny::batch * LlamaTiny::tokens; ++row) {
    const Values got = model.logits(batch, row);
    for (int64_t v = 0; v < tiny.spec.vocab; ++v)
      worst =
          std::max(worst, std::abs(got[static_cast<std::size_t>(v)] - tiny.logits[static_cast<std::size_t>(row * tiny.spec.vocab + v)]));
  }
  EXPECT_LE(worst, 2e-5);
}

TEST(GoldenLlama, LossAndGradientsMatchTheReference) {
  const LlamaTiny tiny = read_llama_tiny();
  const ReferenceBatch batch = first_batch(tiny);
  const double rows = LlamaTiny::batch * LlamaTiny::tokens;
  Rig rig;
  ModelRig model(rig, tiny.spec, tiny.parameters, LlamaTiny::batch, LlamaTiny::tokens);
  EXPECT_NEAR(model.step(batch, true) / rows, tiny.loss, 1e-5);
  Params gradients = model.params().read_gradients();
  ASSERT_EQ(gradients.size(), tiny.gradients.size());
  for (auto& [name, got] : gradients) {
    for (double& g : got) g /= rows;  // nsp sums over tokens
    EXPECT_LE(relative_l2(got, tiny.gradients.at(name)), 1e-4) << name;
  }
}

}  // namespace
}  // namespace nsp::test
