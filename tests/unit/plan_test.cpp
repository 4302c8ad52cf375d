#include <gtest/gtest.h>

#include <numeric>

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
  EXPECT_EQ(p.micro_steps(0), 2);
  const std::vector<double> w = p.weights();
  EXPECT_DOUBLE_EQ(w[0] + w[1] + w[2], 1.0);
}

TEST(JobPlan, TextReadsBack) {
  JobPlan p;
  p.parallel.axes = {{"sequence", 2}};
  p.parallel.token_cuts = {0, 8, 16};
  p.shares = {3, 2};
  p.memory_budget = 12345;
  const auto values = plan_values(p.text());
  EXPECT_EQ(values.at("axes"), "sequence:2");
  EXPECT_EQ(values.at("token_cuts"), "0 8 16");
  EXPECT_EQ(values.at("shares"), "3 2");
  EXPECT_EQ(values.at("memory_budget"), "12345");
}

TEST(Budget, ANeedAboveTheRoomNamesBoth) {
  MemoryTable t;
  t.lines = {{"weights", "head", "device", int64_t{3} << 30}, {"staging", "", "pinned", int64_t{1} << 30}};
  MemoryRoom room;
  room.host_free = int64_t{6} << 30;
  room.ranks_on_host = 1;
  EXPECT_NO_THROW(check_fits(t, room, "Advice."));
  room.ranks_on_host = 2;
  try {
    check_fits(t, room, "Advice.");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::does_not_fit);
    EXPECT_NE(std::string(e.what()).find("8.0 GiB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("6.0 GiB"), std::string::npos) << e.what();
  }
  room.device_is_host = false;
  EXPECT_NO_THROW(check_fits(t, room, "Advice."));
  room.device_free = 1;
  EXPECT_THROW(check_fits(t, room, "Advice."), Error);
}

}  // namespace
}  // namespace nsp
