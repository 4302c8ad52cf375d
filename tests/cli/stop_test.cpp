// Runs that are stopped - by a signal, a file, the time, bad steps - and go on when the same command is given again.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "tests/cli/command.hpp"
#include "tests/cli/processes.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

// Sequences a step, for runs that are stopped: the golden batch of 4 takes 3 ms, and a signal reaches the ranks later than that.
constexpr const char* longer_batch = "48";

constexpr double patience = 300;  // seconds; on a crowded machine a run of a second takes half a minute

// The run stopped with 75 and its last step is in a checkpoint; the same command goes on to the end, no step lost or doubled.
void expect_stopped_and_goes_on(const Said& stopped, const std::string& command, const std::string& run_dir, int steps) {
  EXPECT_EQ(stopped.code, 75) << stopped.out;
  EXPECT_EQ(stopped.count("stopping after this step"), 1) << stopped.out;
  expect_good_checkpoints(run_dir);
  const std::vector<std::string> before = records(run_dir, "step"), saved = records(run_dir, "checkpoint");
  ASSERT_FALSE(before.empty());
  ASSERT_FALSE(saved.empty());
  ASSERT_LT(before.size(), static_cast<std::size_t>(steps)) << "the run was over before it was stopped";
  EXPECT_EQ(field(saved.back(), "step"), field(before.back(), "step"));
  const Said again = run(command, patience);
  EXPECT_EQ(again.code, 0) << again.out;
  EXPECT_EQ(again.count("resumed from step " + field(before.back(), "step") + " "), 1) << again.out;
  losses(run_dir, steps);
}

class Stopped : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int steps = 40;
  std::string run_dir() const { return folder_ / "run"; }
  std::string command(const std::string& more) const {
    return ranks(2) + " --plugins " + GetParam() + " " + more + with(tiny_run(run_dir(), steps), "--train.global_batch", longer_batch);
  }

  TempFolder folder_;
};

TEST_P(Stopped, Usr1DuringSteps) {
  const std::string start = command("--train.eval_every 0");
  Background job(start);
  ASSERT_TRUE(job.wait_for(step_text(5, steps), patience));
  job.signal(SIGUSR1);
  const Said stopped = job.wait(patience);
  EXPECT_TRUE(stopped.contains("signal USR1")) << stopped.out;
  expect_stopped_and_goes_on(stopped, start, run_dir(), steps);
}

TEST_P(Stopped, Usr1DuringEvaluation) {
  const std::string start = command("--train.eval_every 5");
  // The same run with so much to evaluate that the signal comes in between.
  Background job(with(with(start, "--data.val_path", long_token_file(folder_, 8)), "--train.eval_batches", "100000"));
  ASSERT_TRUE(job.wait_for(step_text(5, steps), patience));
  pause_ms(50);
  EXPECT_FALSE(job.wait_for("step      5  validation loss", 0.01)) << "the evaluation was over before the signal";
  job.signal(SIGUSR1);
  const Said stopped = job.wait(patience);
  // The ranks left the evaluation together; it is made up for when the run goes on.
  EXPECT_TRUE(stopped.contains("in the middle of its evaluation")) << stopped.out;
  EXPECT_FALSE(stopped.contains("step      5  validation loss")) << stopped.out;
  expect_stopped_and_goes_on(stopped, start, run_dir(), steps);
  std::vector<int> evaluated;
  for (const std::string& line : records(run_dir(), "eval")) evaluated.push_back(static_cast<int>(number(line, "step")));
  EXPECT_EQ(evaluated, std::vector<int>({0, 5, 10, 15, 20, 25, 30, 35, 40}));
}

// The evaluations that no step precedes or follows: the run stops with a checkpoint there too, and the last one is not lost.
TEST_P(Stopped, Usr1DuringTheFirstAndTheLastEvaluation) {
  constexpr int few = 6;
  const std::string start = with(command("--train.eval_every 6"), "--train.steps", std::to_string(few));
  const std::string longer = with(with(start, "--data.val_path", long_token_file(folder_, 8)), "--train.eval_batches", "100000");
  for (int step : {0, few}) {
    Background job(longer);
    if (step > 0) {
      ASSERT_TRUE(job.wait_for(step_text(few, few), patience));
    }
    for (int ms = 0; ms < 1000 * static_cast<int>(patience) && !fs::exists(run_dir() + "/config.ini"); ++ms) pause_ms(1);
    pause_ms(50);
    job.signal(SIGUSR1);
    const Said stopped = job.wait(patience);
    EXPECT_EQ(stopped.code, 75) << stopped.out;
    EXPECT_TRUE(stopped.contains("in the middle of its evaluation")) << stopped.out;
    EXPECT_TRUE(fs::exists(step_folder(run_dir(), step) + "/manifest.h5")) << stopped.out;
    if (step == 0) {
      ASSERT_EQ(run(with(start, "--train.steps", "3"), patience).code, 0);
    }
  }
  const Said last = run(start, patience);
  EXPECT_EQ(last.code, 0) << last.out;
  EXPECT_TRUE(last.contains("resumed from step 6") && last.contains("step      6  validation loss")) << last.out;
  EXPECT_EQ(run(start, patience).count("is complete: 6 of 6 steps"), 1);
  losses(run_dir(), few);
  expect_good_checkpoints(run_dir());
}

TEST_P(Stopped, Usr1DuringCheckpoint) {
  const std::string start = command("--train.eval_every 0 --train.checkpoint_every 3");
  Background job(start);
  ASSERT_TRUE(wait_for_unfinished(step_folder(run_dir(), 6))) << "no checkpoint was seen while it was written";
  job.signal(SIGUSR1);
  expect_stopped_and_goes_on(job.wait(patience), start, run_dir(), steps);
}

TEST_P(Stopped, TermToOneRank) {
  const std::string start = command("--train.eval_every 0");
  Background job(start);
  ASSERT_TRUE(job.wait_for(step_text(5, steps), patience));
  const std::vector<pid_t> processes = descendants(job.pid());
  ASSERT_EQ(processes.size(), 2u);
  ::kill(*std::max_element(processes.begin(), processes.end()), SIGTERM);  // the last started one is rank 1
  expect_stopped_and_goes_on(job.wait(patience), start, run_dir(), steps);
}

TEST_P(Stopped, FileStop) {
  const std::string start = command("--train.eval_every 0");
  Background job(start);
  ASSERT_TRUE(job.wait_for(step_text(5, steps), patience));
  write_file(run_dir() + "/STOP", "");
  const Said stopped = job.wait(patience);
  EXPECT_TRUE(stopped.contains("the file STOP")) << stopped.out;
  expect_stopped_and_goes_on(stopped, start, run_dir(), steps);
}

TEST_P(Stopped, TimeLimit) {
  const std::string start = command("--train.eval_every 0");
  const Said stopped = run(start + "--train.max_hours 1e-6", patience);
  EXPECT_TRUE(stopped.contains("train.max_hours")) << stopped.out;
  expect_stopped_and_goes_on(stopped, start + "--train.max_hours 0", run_dir(), steps);
}

TEST_P(Stopped, FileCheckpointAsksForOneAndTheRunGoesOn) {
  Background job(command("--train.eval_every 0"));
  ASSERT_TRUE(job.wait_for(step_text(5, steps), patience));
  write_file(run_dir() + "/CHECKPOINT", "");
  const Said said = job.wait(patience);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_FALSE(fs::exists(run_dir() + "/CHECKPOINT"));
  const std::vector<std::string> saved = records(run_dir(), "checkpoint");
  ASSERT_EQ(saved.size(), 2u) << said.out;
  EXPECT_GE(number(saved[0], "step"), 5);
  EXPECT_LT(number(saved[0], "step"), steps);
  EXPECT_EQ(number(saved[1], "step"), steps);
  expect_good_checkpoints(run_dir());
}

INSTANTIATE_TEST_SUITE_P(Resume, Stopped, testing::Values("ddp", "desloc"), [](const auto& info) { return std::string(info.param); });

class Diverged : public testing::TestWithParam<const char*> {
 protected:
  std::string command(const std::string& more) const {
    // The first step ruins the weights.
    return with(ranks(2) + " --plugins " + GetParam() + " " + more + tiny_run(folder_ / "run", 30), "--train.lr", "1e30");
  }
  TempFolder folder_;
};

TEST_P(Diverged, EndsWith5AfterBadStepsInARow) {
  const Said said = run(command("--train.max_bad_steps 4"), patience);
  EXPECT_EQ(said.code, 5) << said.out;
  EXPECT_EQ(said.count("nsp_app: error: training diverged: 4 steps in a row"), 1) << said.out;
  EXPECT_EQ(said.count("nsp_app: error:"), 1) << said.out;
  EXPECT_TRUE(said.contains("Lower --train.lr")) << said.out;
  EXPECT_GE(said.count("2 replica(s) skipped the update"), 4) << said.out;
  EXPECT_LT(said.count("skipped the update"), 8) << said.out;
  EXPECT_FALSE(said.contains(step_text(30, 30))) << said.out;
}

TEST_P(Diverged, SkippedStepsAreCountedAndTheRunGoesOnBelowTheLimit) {
  const Said said = run(command("--train.max_bad_steps 100"), patience);
  EXPECT_EQ(said.code, 0) << said.out;
  const std::vector<std::string> steps = records(folder_ / "run", "step");
  ASSERT_EQ(steps.size(), 30u);
  EXPECT_EQ(field(steps.front(), "skipped_replicas"), "");
  EXPECT_TRUE(std::isfinite(number(steps.front(), "loss")));
  EXPECT_EQ(field(steps.back(), "skipped_replicas"), "2");
  EXPECT_EQ(field(steps.back(), "loss"), "null");
  EXPECT_EQ(read_scalars(folder_ / "run", 30).at("step"), "30");
  EXPECT_GE(said.count("2 replica(s) skipped the update"), 28) << said.out;
}

INSTANTIATE_TEST_SUITE_P(Resume, Diverged, testing::Values("ddp", "desloc"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace nsp::test
