#include <gtest/gtest.h>

#include <numeric>

#include "core/plan/fit.hpp"
#include "core/plan/planner.hpp"

namespace nsp {
namespace {

TEST(Shares, DifferByAtMostOneAndSumToTheBatch) {
  for (const int replicas : {1, 2, 3, 7, 8}) {
    const std::vector<int64_t> s = equal_shares(24, replicas);
    EXPECT_EQ(std::accumulate(s.begin(), s.end(), int64_t{0}), 24);
    EXPECT_LE(s.front() - s.back(), 1);
    EXPECT_GE(s.back(), 1);
  }
}

TEST(Shares, FewerSequencesThanReplicasSaysWhatToRaise) {
  try {
    equal_shares(3, 4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("Raise train.global_batch to 4"), std::string::npos) << e.what();
  }
}

TEST(MicroBatch, IsCutIntoNearEqualPieces) {
  EXPECT_EQ(auto_micro_batch(24, 128), 12);  // 2048 tokens would be 16: two steps of 12
  EXPECT_EQ(auto_micro_batch(3, 128), 3);
  EXPECT_EQ(auto_micro_batch(8, 100000), 1);
}

TEST(JobPlan, RanksOfAReplicaAreNeighbours) {
  JobPlan p;
  p.ranks = 6;
  p.replicas = 3;
  p.replica_size = 2;
  p.global_batch = 8;
  p.micro_batch = 2;
  p.shares = equal_shares(8, 3);
  EXPECT_EQ(p.replica_of(5), 2);
  EXPECT_EQ(p.position_of(5), 1);
  EXPECT_EQ(p.first_sequence(2), 6);
  const std::vector<double> w = p.weights();
  EXPECT_DOUBLE_EQ(w[0] + w[1] + w[2], 1.0);
}

TEST(JobPlan, TextReadsBack) {
  JobPlan p;
  p.parallel.axes = {{"sequence", 2}};
  p.parallel.token_cuts = {0, 8, 16};
  p.shares = {3, 2};
  p.memory_budget = 12345;
  p.plugins = "ddp,dp";
  p.dtype = DType::bf16;
  const auto values = plan_values(p.text());
  EXPECT_EQ(values.at("axes"), "sequence:2");
  EXPECT_EQ(values.at("token_cuts"), "0 8 16");
  EXPECT_EQ(values.at("shares"), "3 2");
  EXPECT_EQ(values.at("dtype"), "bf16");
  EXPECT_EQ(compute_dtype(values.at("dtype")), DType::bf16);
  EXPECT_EQ(values.at("memory_budget"), "12345");
  EXPECT_EQ(values.at("plugins"), "ddp,dp");
  EXPECT_EQ(plan_values(p.short_text()).count("memory_budget"), 0u) << "no resume compares it";
  p.shares = equal_shares(41, 20);
  EXPECT_EQ(plan_values(p.text()).at("shares").substr(0, 7), "3 2 2 2");  // a resume reads the numbers
  EXPECT_EQ(plan_values(p.short_text()).at("shares"), "1 of 3, 19 of 2");
}

TEST(JobPlan, ValuesOfRanksAreRuns) {
  EXPECT_EQ(by_rank({"4", "4"}), "4");
  const std::string mixed = by_rank({"v4", "v4", "v3", "v4"});
  EXPECT_EQ(mixed, "v4*2 v3*1 v4*1");
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(value_of_rank(mixed, rank), rank == 2 ? "v3" : "v4");
  EXPECT_EQ(value_of_rank("4", 7), "4");
  EXPECT_EQ(value_of_rank(mixed, 4), "");
}

TEST(Shares, ManyAreListedAsRuns) {
  EXPECT_EQ(shares_text({3, 3, 2}), "3 3 2");
  EXPECT_EQ(shares_text(equal_shares(41, 20)), "1 of 3, 19 of 2");
}

// Two ranks of 4 GiB each in device memory or so, on hosts of 6 GiB.
struct Job {
  JobPlan plan;
  std::vector<PositionKind> kinds;
  Topology topology;
};

Job two_ranks(const char* device_kind, int hosts) {
  Job job;
  job.plan.ranks = job.plan.replicas = 2;
  job.plan.replica_size = 1;
  job.kinds.push_back({{0}, {}});
  job.kinds[0].memory.lines = {{"weights", "head", "device", int64_t{3} << 30}, {"staging", "", "pinned", int64_t{1} << 30}};
  for (int r = 0; r < 2; ++r) {
    RankInfo info;
    info.host = "node" + std::to_string(r % hosts);
    info.device_name = "D";
    info.device_kind = device_kind;
    info.memory_free = (int64_t{3} + r) << 30;
    info.host_memory_available = int64_t{6} << 30;
    job.topology.ranks.push_back(info);
  }
  return job;
}

TEST(Fit, RanksOfOneProcessorShareItsHost) {
  EXPECT_TRUE(all_fit(check_memory(two_ranks("cpu", 2).plan, two_ranks("cpu", 2).kinds, two_ranks("cpu", 2).topology)));
  const Job job = two_ranks("cpu", 1);
  const std::vector<MemoryCheck> checks = check_memory(job.plan, job.kinds, job.topology);
  try {
    require_fit(checks, "Advice.");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::does_not_fit);
    for (const char* text : {"does not fit into host memory", "8.0 GiB", "6.0 GiB", "host node0 (2 ranks)", "Advice."})
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
  EXPECT_NE(fit_text(checks).find("8.0 GiB of 6.0 GiB, DOES NOT FIT  <- scarcest"), std::string::npos) << fit_text(checks);
  EXPECT_EQ(scarcest_memory(job.topology), int64_t{3} << 30);
}

TEST(Fit, DevicesCountApartFromTheirHost) {
  Job job = two_ranks("cuda", 1);
  EXPECT_TRUE(all_fit(check_memory(job.plan, job.kinds, job.topology)));
  EXPECT_EQ(scarcest(check_memory(job.plan, job.kinds, job.topology))->where, "D (2 ranks)");  // 3 of 3 GiB
  job.topology.ranks[1].memory_free = 1;
  EXPECT_FALSE(all_fit(check_memory(job.plan, job.kinds, job.topology)));
  EXPECT_EQ(scarcest_memory(job.topology), 1);
  job.topology.ranks[0].memory_free = job.topology.ranks[1].memory_free = 0;  // not known
  EXPECT_TRUE(all_fit(check_memory(job.plan, job.kinds, job.topology)));
}

TEST(Fit, EachPositionNeedsItsOwn) {
  Job job = two_ranks("cuda", 1);
  job.plan.replicas = 1;
  job.plan.replica_size = 2;
  job.kinds.push_back(job.kinds[0]);
  job.kinds[1].positions = {1};
  job.kinds[1].memory.lines[0].bytes = int64_t{5} << 30;
  const std::vector<MemoryCheck> checks = check_memory(job.plan, job.kinds, job.topology);
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_TRUE(checks[0].fits());
  EXPECT_FALSE(checks[1].fits());
  EXPECT_EQ(checks[1].where, "D, position 1 (1 rank)");
  EXPECT_EQ(checks[2].need, int64_t{2} << 30);
}

}  // namespace
}  // namespace nsp
