#include "core/data/mix_schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace nsp {
namespace {

std::vector<int64_t> whole(std::vector<double> weights) {
  return whole_weights(weights);
}

TEST(WholeWeights, AreExactWhereTheyCanBe) {
  EXPECT_EQ(whole({3, 1}), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(whole({0.7, 0.3}), (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(whole({50, 25, 25}), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(whole({0.3333, 0.6667}), (std::vector<int64_t>{3333, 6667}));
  EXPECT_EQ(whole({5}), (std::vector<int64_t>{1}));
}

TEST(WholeWeights, AreTheNearestSharesElsewhere) {
  const std::vector<int64_t> thirds = whole({1.0 / 3, 2.0 / 3});
  EXPECT_EQ(thirds[0] + thirds[1], 65536);
  EXPECT_NEAR(static_cast<double>(thirds[0]) / 65536, 1.0 / 3, 1e-5);
  const std::vector<int64_t> small = whole({123456789, 1});
  EXPECT_EQ(small, (std::vector<int64_t>{65535, 1}));
  const std::vector<int64_t> many = whole({1e9, 1, 1, 1, 1, 1e-9});
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), int64_t{0}), 65536);
  EXPECT_EQ(*std::min_element(many.begin(), many.end()), 1);
}

// Tijdeman's bound is 1 - 1 / (2k - 2) for k corpora.
TEST(MixSchedule, IsNeverFurtherThanOneFromTheProportions) {
  for (const std::vector<int64_t>& weights :
       {std::vector<int64_t>{3, 1}, {1}, {1, 1, 1}, {7, 3}, {5, 3, 2, 1}, {97, 2, 1}, {1, 50, 1, 49, 13}, {65535, 1}}) {
    const MixSchedule schedule(weights);
    const auto period = static_cast<double>(schedule.period());
    const double bound = weights.size() > 1 ? 1.0 - 1.0 / (2.0 * static_cast<double>(weights.size()) - 2.0) : 0.0;
    std::vector<int64_t> counts(weights.size(), 0);
    for (int64_t n = 0; n < schedule.period() + 100; ++n) {
      const MixSchedule::Place place = schedule.at(n);
      ASSERT_EQ(place.index, counts[place.corpus]++) << n;  // each corpus' samples come in order, none is left out
      for (std::size_t c = 0; c < weights.size(); ++c)
        ASSERT_LE(std::abs(static_cast<double>(counts[c]) - static_cast<double>((n + 1) * weights[c]) / period), bound + 1e-9) << n;
    }
    if (schedule.period() > 1000) continue;
    counts.assign(weights.size(), 0);
    for (int64_t n = 0; n < 2 * schedule.period(); ++n) {
      for (std::size_t c = 0; c < weights.size(); ++c) ASSERT_EQ(schedule.count(c, n), counts[c]);
      ++counts[schedule.at(n).corpus];
    }
  }
}

TEST(MixSchedule, LooksFarAhead) {
  const MixSchedule schedule({3, 1});
  const int64_t far = int64_t{1} << 58;
  EXPECT_EQ(schedule.count(0, far), far / 4 * 3);
  EXPECT_EQ(schedule.at(far).index + schedule.at(far).corpus, schedule.at(0).corpus + (schedule.at(0).corpus == 0 ? far / 4 * 3 : far / 4));
}

}  // namespace
}  // namespace nsp
