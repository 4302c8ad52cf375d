// A gradient that is not a number: the step is skipped and counted, the weights stay numbers, and too many in a row end the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

constexpr int steps = 16, saved = 5;

class BadGradient : public testing::TestWithParam<const char*> {
 protected:
  std::string run_dir() const { return folder_ / "run"; }
  // Steps first + 1 ... first + bad are spoilt on rank 1.
  std::string command(int first, int bad, const std::string& more) const {
    return ranks(2) + faulty(GetParam(), "nan", first, 1, bad) + "--plugins faulty --faulty.kx 2 --faulty.ku 4 --faulty.kv 4 " +
           "--train.checkpoint_every 5 " + more + tiny_run(run_dir(), steps);
  }
  bool ddp() const { return GetParam() == std::string("ddp"); }

  TempFolder folder_;
};

void expect_finite(const std::string& run_dir, int step) {
  int64_t values = 0, bad = 0;
  for (const auto& [name, tensor] : read_checkpoint(run_dir, step))
    for (float value : tensor) {
      ++values;
      bad += std::isfinite(value) ? 0 : 1;
    }
  EXPECT_GT(values, 400000);  // weights and two moments
  EXPECT_EQ(bad, 0);
}

TEST_P(BadGradient, OneBadStepIsSkippedAndCounted) {
  const Said said = run(command(7, 1, "--run.verify_every 1"), patience);
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("skipped the update"), 1) << said.out;
  EXPECT_TRUE(said.contains(ddp() ? "step 8: 2 replica(s) skipped" : "step 8: 1 replica(s) skipped")) << said.out;
  losses(run_dir(), steps);
  for (const std::string& line : records(run_dir(), "step")) {
    const bool eighth = field(line, "step") == "8";
    EXPECT_EQ(field(line, "skipped_replicas"), !eighth ? "" : ddp() ? "2" : "1") << line;
    // The loss is that of the replicas that took the step.
    EXPECT_EQ(std::isfinite(number(line, "loss")), !(eighth && ddp())) << line;
  }
  const auto scalars = read_scalars(run_dir(), steps);
  EXPECT_EQ(scalars.at("optimizer_updates"), ddp() ? "15 15" : "16 15");
  EXPECT_EQ(scalars.at("bad_steps_in_a_row"), "0 0");
  expect_finite(run_dir(), steps);
}

TEST_P(BadGradient, TooManyInARowEndWith5AndTheLastCheckpointIsGood) {
  const Said said = run(command(7, 1000, "--train.max_bad_steps 4"), patience);
  EXPECT_EQ(said.code, 5) << said.out;
  EXPECT_EQ(said.count("nsp_app: error:"), 1) << said.out;
  EXPECT_TRUE(said.contains("training diverged: 4 steps in a row") && said.contains("Lower --train.lr")) << said.out;
  EXPECT_FALSE(said.contains(step_text(14, steps))) << "the run went on:\n" << said.out;
  // Step 10 was saved in the middle of it: with bad steps that count after a resume, and with weights that are numbers.
  ASSERT_TRUE(is_there(run_dir(), 10)) << said.out;
  EXPECT_EQ(read_scalars(run_dir(), 10).at("bad_steps_in_a_row"), ddp() ? "3 3" : "0 3");
  expect_finite(run_dir(), 10);
  const Said again = run(command(7, 1000, "--train.max_bad_steps 4"), patience);
  EXPECT_EQ(again.code, 5) << again.out;
  EXPECT_TRUE(again.contains("resumed from step 10")) << again.out;
  expect_goes_on(command(1000, 1, ""), run_dir(), 10, steps);
  expect_finite(run_dir(), steps);
}

INSTANTIATE_TEST_SUITE_P(Fault, BadGradient, testing::Values("ddp", "desloc"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace nsp::test
