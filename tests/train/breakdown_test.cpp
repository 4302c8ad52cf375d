// The measured parts of a run's time, in whole jobs of threads.
#include <gtest/gtest.h>

#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

LocalSettings job(int ranks, const char* sync, const char* parallel) {
  LocalSettings s = tiny_settings();
  s.ranks = ranks;
  s.sync = sync;
  s.parallel = parallel;
  s.global_batch = 4;
  s.train.steps = 6;
  s.train.eval_every = 3;
  s.val_data = [] { return tiny_data("val"); };
  return s;
}

void expect_whole(const LocalResult& result, int ranks) {
  ASSERT_EQ(result.times.size(), static_cast<std::size_t>(ranks));
  for (const Breakdown& b : result.times) {
    EXPECT_GT(b.total, 0);
    for (const double part : {b.compute, b.data, b.optimizer, b.evaluation, b.checkpoint}) EXPECT_GT(part, 0);
    for (const double part : {b.exchanges, b.averages, b.vectors, b.gather, b.hidden}) EXPECT_GE(part, 0);
    EXPECT_GE(b.rest(), -1e-9);          // no part is counted twice
    EXPECT_LE(b.rest(), 0.5 * b.total);  // and none is forgotten
    EXPECT_LE(b.hidden, b.total);
  }
}

TEST(Breakdown, ARankAloneCommunicatesNothing) {
  const LocalResult result = run_local(job(1, "ddp", "dp"));
  expect_whole(result, 1);
  EXPECT_EQ(result.times[0].exposed(), 0);
  EXPECT_EQ(result.times[0].hidden, 0);
}

TEST(Breakdown, SumsOfGradientsAreExposedOrHidden) {
  for (const bool fake : {false, true}) {
    LocalSettings s = job(2, "ddp", "dp");
    s.fake_device = fake;
    const LocalResult result = run_local(s);
    expect_whole(result, 2);
    for (const Breakdown& b : result.times) {
      EXPECT_GT(b.averages + b.hidden, 0);
      EXPECT_GT(b.vectors, 0);
      EXPECT_EQ(b.exchanges + b.gather, 0);
    }
  }
}

// Between threads a message is there at once, so nearly nothing is in flight.
TEST(Breakdown, AveragesAreExposedOrHidden) {
  LocalSettings s = job(2, "desloc", "dp");
  s.options = {{"desloc.kx", "1"}, {"desloc.ku", "1"}, {"desloc.kv", "1"}};
  const LocalResult result = run_local(s);
  expect_whole(result, 2);
  for (const Breakdown& b : result.times) EXPECT_GT(b.averages + b.hidden + b.vectors, 0);
}

TEST(Breakdown, ExchangesInsideAReplicaAreNotCompute) {
  LocalSettings s = job(2, "ddp", "autosp");
  s.options = {{"autosp.degree", "2"}};
  const LocalResult result = run_local(s);
  expect_whole(result, 2);
  for (const Breakdown& b : result.times) {
    EXPECT_GT(b.exchanges + b.gather, 0);  // each alone may be over before anybody waits
  }
}

}  // namespace
}  // namespace nsp::test
