// The ring of collectives and the watchdog that reads it.
#include "comm/watchdog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace nsp::test {
namespace {

CollectiveRecord record(const char* op, int64_t count) {
  return {0, "replicate", op, count, DType::f32, 7, "its own input"};
}

TEST(FixedRing, KeepsTheLastAndTheOldestUnfinished) {
  FixedRing ring;
  EXPECT_EQ(ring.oldest_unfinished(), 0u);
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ(ring.entered(record("all_reduce", i)), static_cast<uint64_t>(i));
    if (i != 3) ring.finished(i);
  }
  EXPECT_EQ(ring.oldest_unfinished(), 3u);
  std::vector<FixedRing::Entry> entries = ring.entries();
  ASSERT_EQ(entries.size(), 64u);
  EXPECT_EQ(entries[0].record.sequence, 3u);
  EXPECT_EQ(entries[0].record.count, 3);
  EXPECT_EQ(entries[1].record.sequence, 38u);
  EXPECT_EQ(entries[63].record.sequence, 100u);
  ring.finished(3);
  EXPECT_EQ(ring.oldest_unfinished(), 0u);
}

TEST(FixedRing, FullOfUnfinishedKeepsTheOldest) {
  FixedRing ring;
  for (int i = 1; i <= 80; ++i) ring.entered(record("all_gather", i));
  EXPECT_EQ(ring.oldest_unfinished(), 1u);
  EXPECT_EQ(ring.entries()[62].record.sequence, 63u);
  EXPECT_EQ(ring.entries()[63].record.sequence, 80u);
  ring.finished(70);  // has been replaced
  for (int i = 1; i <= 80; ++i) ring.finished(i);
  EXPECT_EQ(ring.oldest_unfinished(), 0u);
}

TEST(Watchdog, ReportNamesWhatAndWhom) {
  FixedRing ring;
  ring.finished(ring.entered(record("all_gather", 12)));
  ring.waiting(ring.entered(record("all_reduce", 345)), "ranks 2, 5");
  const std::string text = timeout_report(ring, 3, "node17", 600);
  for (const char* part :
       {"rank 3 on node17", "comm.timeout = 600 s", "all_reduce on communicator 'replicate' (tag 7) waits for ranks 2, 5", "345", "fp32",
        "tag 7", "all_gather", "done in", "NOT DONE", "What to do"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Watchdog, EndsAProcessThatWaitsTooLong) {
  const auto wait_for_ever = [] {
    FixedRing ring;
    Watchdog watchdog(ring, 1, "node", 0.3);
    ring.waiting(ring.entered(record("all_reduce", 1)), "rank 0");
    std::this_thread::sleep_for(std::chrono::seconds(10));
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EXIT(wait_for_ever(), testing::ExitedWithCode(6), "waits for rank 0");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// mpirun leaves the others a second when one rank has given up.
TEST(Watchdog, ARankThatIsToldToEndGivesUpAtHalfOfTheTime) {
  const auto wait_for_ever = [](bool told) {
    FixedRing ring;
    const BlockingCall call(ring, "world", "split");
    Watchdog watchdog(ring, 1, "node", 4, [told] { return told; });
    std::this_thread::sleep_for(std::chrono::seconds(told ? 60 : 3));
    _exit(0);
  };
  EXPECT_EXIT(wait_for_ever(true), testing::ExitedWithCode(6), "split on communicator 'world' \\(tag 0\\) waits for the other ranks");
  EXPECT_EXIT(wait_for_ever(false), testing::ExitedWithCode(0), "");
}

TEST(Watchdog, ToldToEndWhileNothingIsStuckIsNoTimeOut) {
  FixedRing ring;
  { const BlockingCall call(ring, "world", "split"); }
  const Watchdog watchdog(ring, 1, "node", 0.2, [] { return true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
}

TEST(Watchdog, LetsProgressGoOn) {
  FixedRing ring;
  const Watchdog watchdog(ring, 0, "node", 0.3);
  // Longer than the time-out in all, but each collective ends in time; then a pause without any.
  uint64_t previous = ring.entered(record("all_reduce", 0));
  for (int i = 1; i < 10; ++i) {
    const uint64_t next = ring.entered(record("all_reduce", i));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    ring.finished(previous);
    previous = next;
  }
  ring.finished(previous);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

TEST(Watchdog, StopsAtOnce) {
  FixedRing ring;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) Watchdog(ring, 0, "node", 1e6);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace nsp::test
