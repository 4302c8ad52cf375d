// A second request to stop, given while the first cannot be obeyed because a step does not end: it counts after 5 s, and not before.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

class SecondSignal : public testing::TestWithParam<int> {};

TEST_P(SecondSignal, CountsAfterFiveSecondsAndTheCheckpointBeforeStays) {
  constexpr int steps = 8, saved = 2;
  const TempFolder folder;
  const std::string run_dir = folder / "run", options = "--plugins faulty --train.checkpoint_every 2" + tiny_run(run_dir, steps);
  Background job("$NSP" + faulty("ddp", "hang", 3, 0) + options);
  ASSERT_TRUE(job.wait_for("faulty: hang", patience));
  job.signal(SIGTERM);
  for (const int ms : {100, 3400}) {  // launchers give one request several times
    pause_ms(ms);
    job.signal(GetParam());
  }
  pause_ms(1000);
  EXPECT_FALSE(job.ended()) << "a signal within 5 s counted";
  pause_ms(1500);
  job.signal(GetParam());
  const Said said = job.wait(20);
  EXPECT_FALSE(said.timed_out);
  EXPECT_EQ(said.code, 128 + GetParam()) << said.out;
  EXPECT_TRUE(is_there(run_dir, saved));
  expect_goes_on("$NSP" + faulty("ddp", "nan", 1000, 0) + options, run_dir, saved, steps);
}

INSTANTIATE_TEST_SUITE_P(Fault, SecondSignal, testing::Values(SIGTERM, SIGINT));

}  // namespace
}  // namespace nsp::test
