#include "nsp/weighted_mean.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "tests/policies/ranks.hpp"

namespace nsp::test {
namespace {

struct Idle : Work {
  explicit Idle(const WeightedMean& mean) : mean(mean) {}
  bool done() override { return mean.idle(); }
  const WeightedMean& mean;
};

void finish(Rank& rank, const WeightedMean& mean) {
  Idle idle(mean);
  rank.wait.wait(idle);
}

std::vector<double> unequal_weights(int replicas) {
  std::vector<double> weights;
  for (int m = 0; m < replicas; ++m) weights.push_back(2.0 * (m + 1) / (replicas * (replicas + 1)));
  return weights;
}

std::vector<double> double_mean(const std::vector<std::vector<float>>& x, const std::vector<double>& weights) {
  std::vector<double> mean(x[0].size(), 0.0);
  for (std::size_t m = 0; m < x.size(); ++m)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weights[m] * static_cast<double>(x[m][i]);
  return mean;
}

// kind, replicas, elements, bucket, in place
using Case = std::tuple<Kind, int, int64_t, int64_t, bool>;
class WeightedMeanCase : public testing::TestWithParam<Case> {};

TEST_P(WeightedMeanCase, EqualsTheSerialMeanAndSendsTheLeast) {
  const auto [kind, replicas, n, bucket, in_place] = GetParam();
  const std::vector<double> weights = unequal_weights(replicas);
  std::vector<std::vector<float>> x;
  for (int m = 0; m < replicas; ++m) x.push_back(values(n, static_cast<unsigned>(100 + m)));
  const std::vector<float> expected = n > 0 ? serial_mean(x, weights) : std::vector<float>();
  const std::vector<double> exact = n > 0 ? double_mean(x, weights) : std::vector<double>();
  std::atomic<int64_t> bytes{0};
  run_ranks(kind, replicas, [&, n = n, bucket = bucket, in_place = in_place, replicas = replicas](Rank& rank) {
    const std::vector<float>& own = x[static_cast<std::size_t>(rank.rank)];
    const Buffer in = upload(rank, own);
    const Buffer out = upload(rank, std::vector<float>(own.size(), -7.0F));
    WeightedMean mean(rank.comm, weights, rank.stream, bucket);
    EXPECT_EQ(mean.staging_bytes(), replicas == 1 ? 0 : 4 * bucket);
    rank.wait.add(&mean);
    const TensorView target = in_place ? vector_view(in) : vector_view(out);
    mean.add(vector_view(in), target, now(rank));
    finish(rank, mean);
    rank.wait.remove(&mean);
    const std::vector<float> result = read(rank, target);
    EXPECT_EQ(result, expected);
    for (std::size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], exact[i], 1e-6);
    if (!in_place) {
      EXPECT_EQ(read(rank, vector_view(in)), own);
    }
    bytes += rank.comm.bytes_sent();
  });
  EXPECT_EQ(bytes, 2 * (replicas - 1) * 4 * n);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Kind kind : {Kind::cpu, Kind::fake})
    for (const int replicas : {1, 2, 3, 4, 5})
      for (const auto& [n, bucket] : std::vector<std::pair<int64_t, int64_t>>{{0, 64}, {1, 64}, {3, 5}, {257, 64}, {1001, 4096}})
        all.emplace_back(kind, replicas, n, bucket, (replicas + n) % 2 == 0);
  for (const int replicas : {2, 3}) {
    all.emplace_back(Kind::fake, replicas, 4099, 1000, true);
    all.emplace_back(Kind::fake, replicas, 4099, 1000, false);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Sizes, WeightedMeanCase, testing::ValuesIn(cases()), [](const testing::TestParamInfo<Case>& info) {
  return name_of(std::get<0>(info.param)) + "_r" + std::to_string(std::get<1>(info.param)) + "_n" +
         std::to_string(std::get<2>(info.param)) + "_b" + std::to_string(std::get<3>(info.param)) +
         (std::get<4>(info.param) ? "_in_place" : "");
});

TEST(WeightedMean, IdenticalReplicasStayBitIdentical) {
  for (const Kind kind : {Kind::cpu, Kind::fake}) {
    const std::vector<float> x = values(515, 3);
    const std::vector<double> weights{0.1, 0.2, 0.7};  // their fp32 values do not sum to 1
    run_ranks(kind, 3, [&](Rank& rank) {
      const Buffer data = upload(rank, x);
      WeightedMean mean(rank.comm, weights, rank.stream, 100);
      rank.wait.add(&mean);
      mean.add(vector_view(data), vector_view(data), now(rank));
      finish(rank, mean);
      rank.wait.remove(&mean);
      EXPECT_EQ(read(rank, vector_view(data)), x);
    });
  }
}

// Ranges queue up; each starts behind its own event, and reads what was enqueued before it.
TEST(WeightedMean, QueuedRangesSeeTheWorkBeforeTheirEvents) {
  for (const Kind kind : {Kind::cpu, Kind::fake}) {
    const std::vector<double> weights{0.25, 0.75};
    run_ranks(kind, 2, [&](Rank& rank) {
      const float own = rank.rank == 0 ? 1.0F : 3.0F;
      const Buffer a = upload(rank, std::vector<float>(300, own)), b = upload(rank, std::vector<float>(77, own));
      WeightedMean mean(rank.comm, weights, rank.stream, 64);
      rank.wait.add(&mean);
      const Ops ops(rank.stream);
      // Enough work to keep the stream busy until long after the collective could have started.
      const Buffer much = upload(rank, std::vector<float>(1 << 20, 0.0F));
      for (int i = 0; i < 30; ++i) ops.scale(vector_view(much), 1.0F);
      for (int i = 0; i < 3; ++i) ops.scale(vector_view(a), 2.0F);
      mean.add(vector_view(a), vector_view(a), now(rank));
      for (int i = 0; i < 3; ++i) ops.scale(vector_view(b), 2.0F);
      mean.add(vector_view(b), vector_view(b), now(rank));
      finish(rank, mean);
      EXPECT_EQ(read(rank, vector_view(a)), std::vector<float>(300, 8.0F * 2.5F));
      EXPECT_EQ(read(rank, vector_view(b)), std::vector<float>(77, 8.0F * 2.5F));
      mean.add(vector_view(b), vector_view(a).slice(0, 77), now(rank));  // once more, after it was idle
      finish(rank, mean);
      rank.wait.remove(&mean);
      EXPECT_EQ(read(rank, vector_view(a).slice(0, 77)), std::vector<float>(77, 20.0F));
    });
  }
}

TEST(WeightedMean, BadArgumentsAreRefused) {
  run_ranks(Kind::cpu, 1, [](Rank& rank) {
    EXPECT_THROW(WeightedMean(rank.comm, {0.5, 0.5}, rank.stream, 64), Error);
    EXPECT_THROW(WeightedMean(rank.comm, {0.5}, rank.stream, 64), Error);
    EXPECT_THROW(WeightedMean(rank.comm, {1.0}, rank.stream, 0), Error);
    WeightedMean mean(rank.comm, {1.0}, rank.stream, 64);
    const Buffer x = upload(rank, values(8, 1));
    EXPECT_THROW(mean.add(vector_view(x), vector_view(x).slice(0, 7), nullptr), Error);
  });
}

}  // namespace
}  // namespace nsp::test
