// Initial weights: any piece has the same bits, and the values have the distribution that was asked for.
#include "core/model/init.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/model/philox.hpp"

namespace nsp {
namespace {

Param normal_param(const std::string& name, int64_t n, double std) {
  Param p;
  p.name = name;
  p.shape = {n};
  p.init = {InitKind::normal, std};
  return p;
}

std::vector<float> values(const Param& p, uint64_t seed, int64_t lo, int64_t hi) {
  std::vector<float> out(static_cast<std::size_t>(hi - lo));
  initial_values(p, seed, lo, hi - lo, out.data());
  return out;
}

TEST(Philox, KnownAnswers) {  // of the authors' Random123
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(InitialValues, AnyPieceHasTheSameBits) {
  const Param p = normal_param("blocks.0.mlp.fc.weight", 1001, 0.02);
  const std::vector<float> whole = values(p, 7, 0, 1001);
  for (const auto& [lo, hi] : {std::pair<int64_t, int64_t>{0, 1}, {1, 3}, {3, 4}, {2, 9}, {997, 1001}, {500, 500}})
    EXPECT_EQ(values(p, 7, lo, hi), std::vector<float>(whole.begin() + lo, whole.begin() + hi)) << lo << " to " << hi;
}

TEST(InitialValues, DifferBySeedAndName) {
  const Param p = normal_param("a", 100, 1), q = normal_param("b", 100, 1);
  EXPECT_NE(values(p, 1, 0, 100), values(p, 2, 0, 100));
  EXPECT_NE(values(p, 1, 0, 100), values(q, 1, 0, 100));
}

TEST(InitialValues, MomentsOfTheNormal) {
  const int64_t n = 200000;
  const double std = residual_init_std(8);
  EXPECT_DOUBLE_EQ(std, 0.005);
  const std::vector<float> v = values(normal_param("w", n, std), 3, 0, n);
  double mean = 0, square = 0, fourth = 0, product = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double x = v[i] / std;
    mean += x / n;
    square += x * x / n;
    fourth += x * x * x * x / n;
    if (i > 0) product += x * v[i - 1] / std / n;
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.015);
  EXPECT_NEAR(fourth, 3, 0.1);
  EXPECT_NEAR(product, 0, 0.01) << "neighbours are independent";
}

TEST(InitialValues, OnesZerosAndBounds) {
  Param p = normal_param("x", 5, 1);
  p.init = {InitKind::ones};
  EXPECT_EQ(values(p, 1, 1, 4), std::vector<float>(3, 1.0f));
  p.init = {InitKind::zeros};
  EXPECT_EQ(values(p, 1, 0, 5), std::vector<float>(5, 0.0f));
  EXPECT_THROW(values(p, 1, 3, 6), Error);
}

}  // namespace
}  // namespace nsp
