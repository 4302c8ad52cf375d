#include "tests/train/compare_runs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/tensor/core_states.hpp"

namespace nsp::test {

void expect_losses(const LocalResult& a, const LocalResult& b, double relative) {
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i)
    for (const char* key : {"loss", "grad_norm"}) {
      const double x = json_number(a.metrics[i], key), y = json_number(b.metrics[i], key);
      if (std::isnan(x) && std::isnan(y)) continue;
      EXPECT_NEAR(x, y, relative * std::abs(x)) << key << ", line " << i;
    }
}

void expect_same_bits(const LocalResult& a, const LocalResult& b) {
  ASSERT_EQ(a.model.size(), b.model.size());
  for (const auto& [name, values] : a.model) {
    const std::vector<float>& other = b.model.at(name);
    ASSERT_EQ(values.size(), other.size()) << name;
    EXPECT_EQ(0, std::memcmp(values.data(), other.data(), values.size() * sizeof(float))) << name;
  }
  EXPECT_EQ(a.weight_hashes, b.weight_hashes);
}

void GradientRecorder::record(TrainParts& parts) {
  for (const Range& own : parts.owned()) {
    if (own.empty()) continue;
    const TensorView view = parts.arena.view(gradients_state, own);
    Buffer host(parts.device, view.bytes(), MemoryKind::pinned, "gradients for a test");
    parts.stream.copy(host.data(), view.data(), view.bytes());
    parts.wait.wait(*record_event(parts.device, parts.stream, "gradients"));
    std::lock_guard lock(mutex_);
    for (const ParamPiece& piece : parts.model.table().pieces(own)) {
      const Param& param = parts.model.table().param(piece.param);
      std::vector<float>& values = gradients_[param.name];
      values.resize(static_cast<std::size_t>(param.elements()));
      std::memcpy(values.data() + piece.offset_in_param, static_cast<const float*>(host.data()) + (piece.range.lo - own.lo),
                  static_cast<std::size_t>(piece.range.size()) * sizeof(float));
    }
  }
}

LocalResult run_recorded(LocalSettings settings, GradientRecorder& recorder) {
  settings.on_step = [&](TrainParts& parts, int64_t t) {
    if (t == 0) recorder.record(parts);
  };
  return run_local(settings);
}

void expect_close_gradients(const GradientRecorder& a, const GradientRecorder& b, double relative) {
  ASSERT_EQ(a.gradients().size(), b.gradients().size());
  for (const auto& [name, g] : a.gradients()) {
    const std::vector<float>& h = b.gradients().at(name);
    ASSERT_EQ(g.size(), h.size()) << name;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      difference += std::pow(static_cast<double>(g[i]) - h[i], 2);
      norm += std::pow(static_cast<double>(g[i]), 2);
    }
    EXPECT_GT(norm, 0) << name;
    EXPECT_LE(std::sqrt(difference), relative * std::sqrt(norm)) << name;
  }
}

void expect_resume_is_whole(LocalSettings settings, int64_t first_steps) {
  const LocalResult whole = run_local(settings);
  const int64_t steps = settings.train.steps;
  MemoryStore store;
  settings.store = &store;
  settings.train.steps = first_steps;
  run_local(settings);
  settings.train.steps = steps;
  settings.resume = true;
  const LocalResult resumed = run_local(settings);
  EXPECT_EQ(resumed.restored.state.step, first_steps);
  expect_same_bits(whole, resumed);
}

}  // namespace nsp::test
