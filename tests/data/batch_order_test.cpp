#include "core/data/batch_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

bool is_bijection(int64_t n, uint64_t key) {
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t p = permuted(i, n, key);
    if (p < 0 || p >= n || seen[static_cast<std::size_t>(p)]) return false;
    seen[static_cast<std::size_t>(p)] = true;
  }
  return true;
}

TEST(Permutation, IsABijectionForEverySize) {
  for (int64_t n = 1; n <= 2000; ++n) ASSERT_TRUE(is_bijection(n, static_cast<uint64_t>(n) * 77)) << n;
  for (const int64_t n : {65535, 65536, 65537, 300007}) ASSERT_TRUE(is_bijection(n, 5)) << n;
}

TEST(Permutation, StaysInHugeRanges) {
  const int64_t n = (int64_t{1} << 61) + 12345;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) seen.insert(permuted(n - 1 - i, n, 3));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), n);
}

// Each of 8 elements comes first equally often (chi square, 7 degrees of freedom, 99.99th percentile 29.9), and neighbours do
// not stay neighbours.
TEST(Permutation, LooksRandom) {
  const int trials = 8000;
  std::vector<int> first(8);
  for (int key = 0; key < trials; ++key) ++first[static_cast<std::size_t>(permuted(0, 8, static_cast<uint64_t>(key)))];
  double chi = 0;
  for (const int count : first) chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi, 29.9);
  const int64_t n = 100000;
  int64_t close = 0;
  double distance = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const int64_t a = permuted(i, n, 42), b = permuted(i + 1, n, 42);
    close += std::abs(a - b) <= 10;
    distance += static_cast<double>(std::abs(a - b));
  }
  EXPECT_LT(close, 40);  // expected 20, standard deviation 4.5
  EXPECT_NEAR(distance / n, n / 3.0, n * 0.01);
}

// All 24 orders of four elements turn up.
TEST(Permutation, ReachesEveryOrderOfFour) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t key = 0; key < 500; ++key)
    orders.insert({permuted(0, 4, key), permuted(1, 4, key), permuted(2, 4, key), permuted(3, 4, key)});
  EXPECT_EQ(orders.size(), 24u);
}

// A Feistel network on just 16 elements gives even permutations only; half of all are odd.
TEST(Permutation, OddOnesTurnUpAsOften) {
  int even = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    int inversions = 0;
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < i; ++j) inversions += permuted(j, 16, key) > permuted(i, 16, key);
    even += inversions % 2 == 0;
  }
  EXPECT_NEAR(even, 200, 40);  // standard deviation 10
}

TEST(BatchOrder, FileOrderWithoutShuffle) {
  const BatchOrder order(10, 3, false, 1);
  EXPECT_EQ(order.steps_per_epoch(), 3);
  for (int64_t step = 0; step < 9; ++step)
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(order.sample(step, i), step % 3 * 3 + i);  // sample 9 is dropped, the next epoch starts over
}

TEST(BatchOrder, EachEpochTakesNoSampleTwice) {
  const int64_t samples = 101, batch = 8;
  const BatchOrder order(samples, batch, true, 7);
  ASSERT_EQ(order.steps_per_epoch(), 12);
  std::set<std::vector<int64_t>> epochs;
  std::set<int64_t> ever;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int64_t> taken;
    for (int64_t step = epoch * 12; step < epoch * 12 + 12; ++step) {
      EXPECT_EQ(order.epoch(step), epoch);
      for (int64_t i = 0; i < batch; ++i) taken.push_back(order.sample(step, i));
    }
    epochs.insert(taken);
    ever.insert(taken.begin(), taken.end());
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end());
    EXPECT_GE(taken.front(), 0);
    EXPECT_LT(taken.back(), samples);
  }
  EXPECT_EQ(epochs.size(), 20u);                              // no epoch repeats another's order
  EXPECT_EQ(ever.size(), static_cast<std::size_t>(samples));  // no sample is dropped for ever
}

TEST(BatchOrder, DependsOnSeedAndNothingElse) {
  const BatchOrder a(1000, 10, true, 1), same(1000, 10, true, 1), other(1000, 10, true, 2);
  int equal = 0;
  for (int64_t step = 999; step >= 0; --step) {  // any step, in any order: there is no state
    EXPECT_EQ(a.sample(step, 3), same.sample(step, 3));
    equal += a.sample(step, 3) == other.sample(step, 3);
  }
  EXPECT_LT(equal, 20);
}

TEST(BatchOrder, OneStepAnEpoch) {
  const BatchOrder order(5, 5, true, 1);
  EXPECT_EQ(order.steps_per_epoch(), 1);
  std::set<int64_t> taken;
  for (int64_t i = 0; i < 5; ++i) taken.insert(order.sample(3, i));
  EXPECT_EQ(taken.size(), 5u);
}

TEST(BatchOrder, TooFewSamplesSayWhatToChange) {
  const std::string text = ERROR_TEXT(ErrorKind::input, BatchOrder(23, 24, true, 1));
  EXPECT_SAYS(text, "23 windows");
  EXPECT_SAYS(text, "takes 24");
  EXPECT_SAYS(text, "lower train.global_batch");
}

TEST(BatchOrder, PositionText) {
  const BatchOrder order(7493, 24, true, 1);
  EXPECT_EQ(order.position(0), "epoch 1, step 0 of 312, sample 0 of 7493");
  EXPECT_EQ(order.position(2 * 312 + 17), "epoch 3, step 17 of 312, sample 408 of 7493");
}

}  // namespace
}  // namespace nsp
