// The exchange engine over threads as ranks.
#include <gtest/gtest.h>

#include "tests/comm/rank_threads.hpp"

namespace nsp::test {
namespace {

constexpr int64_t kLarge = (1 << 20) + 7;

class LocalCommunicator : public testing::TestWithParam<int> {};

TEST_P(LocalCommunicator, SumsInRankOrder) {
  run_ranks(GetParam(), 512 * 1024, [](Rank r) {
    check_all_reduce(r.comm, r.wait, kLarge);
    check_reduce_scatter(r.comm, r.wait, 50021);
  });
}

TEST_P(LocalCommunicator, SumsInManySmallBlocks) {
  run_ranks(GetParam(), 37, [](Rank r) {
    check_all_reduce(r.comm, r.wait, 20011);
    check_reduce_scatter(r.comm, r.wait, 4099);
  });
}

TEST_P(LocalCommunicator, MovesData) {
  for (int64_t block : {int64_t{37}, int64_t{16 * 1024}}) {
    run_ranks(GetParam(), block, [](Rank r) {
      check_all_gather(r.comm, r.wait, 50021);
      check_all_to_all(r.comm, r.wait, 50021);
      check_broadcast(r.comm, r.wait, 50021);
      check_send_recv(r.comm, r.wait, 50021);
    });
  }
}

TEST_P(LocalCommunicator, OverlapsInAnyOrder) {
  for (int64_t block : {int64_t{37}, int64_t{4096}}) {
    run_ranks(GetParam(), block, [](Rank r) {
      for (int i = 0; i < 5; ++i) check_overlap(r.comm, r.wait, 20000);
    });
  }
}

TEST_P(LocalCommunicator, CountsItsBytes) {
  run_ranks(GetParam(), 1000, [](Rank r) { check_bytes(r.comm, r.wait); });
}

TEST_P(LocalCommunicator, Splits) {
  run_ranks(GetParam(), 1000, [](Rank r) {
    check_split(r.comm, r.wait);
    check_split(r.comm, r.wait);
  });
}

TEST_P(LocalCommunicator, HelpersAndErrors) {
  run_ranks(GetParam(), 1000, [](Rank r) {
    check_helpers(r.comm, r.wait);
    check_errors(r.comm);
    check_helpers(r.comm, r.wait);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, LocalCommunicator, testing::Values(1, 2, 3, 4, 5));

TEST(LocalWorld, LateInputHoldsBackOnlyItsOwnCollective) {
  run_ranks(3, 512 * 1024, [](Rank r) {
    const auto gate = std::make_shared<Gate>();
    std::vector<float> late(100, 1.0f), early(100, 2.0f);
    const WorkPtr behind = r.comm.all_reduce(TensorView(late.data(), DType::f32, {100}), {nullptr, r.comm.rank() == 1 ? gate : nullptr});
    r.wait.wait(r.comm.all_reduce(TensorView(early.data(), DType::f32, {100}), {}));
    EXPECT_EQ(early[99], 6.0f);
    if (r.comm.rank() == 1) {
      EXPECT_FALSE(behind->done());
      EXPECT_TRUE(r.wait.progress());
    }
    gate->open = true;
    r.wait.wait(behind);
    EXPECT_EQ(late[99], 3.0f);
    EXPECT_FALSE(r.wait.progress());
  });
}

TEST(LocalWorld, AbortEndsEveryRank) {
  LocalWorld world(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&world, rank] {
      NoRing ring;
      const std::unique_ptr<Communicator> comm = world.communicator(rank, ring);
      HostWait wait;
      wait.add(comm.get());
      if (rank == 2) {
        EXPECT_THROW(comm->abort(5, "the test says so"), Error);
      } else {
        try {
          barrier_now(*comm, wait);
          ADD_FAILURE() << "the barrier ended without rank 2";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::comm);
          EXPECT_NE(std::string(error.what()).find("the test says so"), std::string::npos) << error.what();
        }
      }
      EXPECT_THROW(comm->progress(), Error);
      EXPECT_THROW(barrier_now(*comm, wait), Error);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LocalWorld, DifferentCollectivesAreAnError) {
  LocalWorld world(2);
  std::vector<std::thread> threads;
  std::atomic<int> errors{0};
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      NoRing ring;
      const std::unique_ptr<Communicator> comm = world.communicator(rank, ring);
      HostWait wait;
      wait.add(comm.get());
      std::vector<float> data(100);
      try {
        wait.wait(comm->all_reduce(TensorView(data.data(), DType::f32, {rank == 0 ? 100 : 90}), {}));
      } catch (const Error& error) {
        ++errors;
        EXPECT_THROW(comm->abort(1, error.what()), Error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 2);
}

TEST(LocalWorld, NothingIsAllocatedAfterReserve) {
  run_ranks(2, 4096, [](Rank r) {
    const int64_t held = r.comm.reserve(100000);
    EXPECT_GE(held, 3 * 8 * 4096 * 4);
    std::vector<float> data(100000), out(50000);
    for (int i = 0; i < 5; ++i) {
      std::vector<WorkPtr> works;
      for (int k = 0; k < 6; ++k)
        works.push_back(r.comm.reduce_scatter(TensorView(data.data(), DType::f32, {100000}), {50000, 50000},
                                              TensorView(out.data(), DType::f32, {50000}), {}));
      for (const WorkPtr& work : works) r.wait.wait(work);
    }
    EXPECT_EQ(r.comm.reserve(0), held);
  });
}

TEST(HostWait, RefusesAWorkThatNobodyMoves) {
  HostWait wait;
  Gate gate;
  EXPECT_THROW(wait.wait(gate), Error);
}

}  // namespace
}  // namespace nsp::test
