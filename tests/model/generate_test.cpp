// The sampler: greedy, top-k, the distribution, and that a draw depends on seed and position alone.
#include "core/model/generate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "nsp/error.hpp"

namespace nsp {
namespace {

const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 2.0f, 1.0f};

std::vector<double> shares(const Sampling& sampling, int draws) {
  std::vector<double> share(logits.size());
  for (int i = 0; i < draws; ++i) share[static_cast<std::size_t>(next_token(logits, sampling, static_cast<uint64_t>(i)))] += 1.0 / draws;
  return share;
}

TEST(NextToken, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(next_token(logits, {.temperature = 0.0}, 3), 1);
}

TEST(NextToken, NothingBeyondTheTokenizersVocabularyIsDrawn) {
  EXPECT_EQ(next_token(logits, {.temperature = 0.0, .vocabulary = 1}, 3), 0);
  const std::vector<double> share = shares({.vocabulary = 3}, 1000);
  EXPECT_EQ(share[3] + share[4], 0);
  EXPECT_GT(share[2], 0);
  EXPECT_EQ(next_token(logits, {.temperature = 0.0, .vocabulary = 100}, 3), 1) << "more than there are is all";
}

TEST(NextToken, FollowsTheSoftmax) {
  for (const double temperature : {0.7, 1.0, 2.0}) {
    const std::vector<double> share = shares({.temperature = temperature}, 40000);
    double total = 0;
    for (const float l : logits) total += std::exp(l / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(share[i], std::exp(logits[i] / temperature) / total, 0.01) << i;
  }
}

TEST(NextToken, TopKDrawsFromTheLikeliest) {
  EXPECT_EQ(shares({.top_k = 1}, 100), (std::vector<double>{0, shares({.top_k = 1}, 100)[1], 0, 0, 0}));
  const std::vector<double> share = shares({.top_k = 3}, 40000);
  EXPECT_EQ(share[0] + share[2], 0);
  EXPECT_NEAR(share[1], 1 / (2 + std::exp(-1.0)), 0.01);
  EXPECT_NEAR(share[3], share[1], 0.01);
  EXPECT_EQ(shares({.top_k = 99}, 500), shares({}, 500));
}

TEST(NextToken, DependsOnSeedAndPositionAlone) {
  std::vector<int32_t> a, b, c;
  for (uint64_t i = 0; i < 200; ++i) {
    a.push_back(next_token(logits, {.seed = 5}, i));
    c.push_back(next_token(logits, {.seed = 6}, i));
  }
  for (uint64_t i = 200; i-- > 0;) b.insert(b.begin(), next_token(logits, {.seed = 5}, i));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(NextToken, NeverDrawsTheImpossible) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> two = {none, 0.0f, none, 0.0f, none};
  for (uint64_t i = 0; i < 500; ++i) EXPECT_EQ(next_token(two, {}, i) % 2, 1);
}

TEST(NextToken, Refusals) {
  const auto kind = [](const std::vector<float>& l, const Sampling& s) {
    try {
      next_token(l, s, 0);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  EXPECT_EQ(kind(logits, {.temperature = -1}), ErrorKind::usage);
  EXPECT_EQ(kind(logits, {.temperature = NAN}), ErrorKind::usage);
  EXPECT_EQ(kind(logits, {.top_k = -1}), ErrorKind::usage);
  EXPECT_EQ(kind({0.0f, NAN}, {}), ErrorKind::input);
  EXPECT_EQ(kind({-INFINITY, -INFINITY}, {.temperature = 0}), ErrorKind::input);
}

}  // namespace
}  // namespace nsp
