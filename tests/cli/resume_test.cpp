// Runs that end early - killed, signalled, out of time, diverged - and go on when the same command is given again.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "nsp/bf16.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/processes.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

// Sequences a step, for runs that are stopped: the golden batch of 4 takes 3 ms, and a signal reaches the ranks later than that.
constexpr const char* longer_batch = "48";

constexpr double patience = 300;  // seconds; on a crowded machine a run of a second takes half a minute

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

std::string step_text(int step, int steps) {
  char text[64];
  std::snprintf(text, sizeof text, "step %6d/%d ", step, steps);
  return text;
}

std::string checkpoint(const std::string& run_dir, int step) {
  char text[32];
  std::snprintf(text, sizeof text, "/checkpoints/step_%08d", step);
  return run_dir + text;
}

void expect_good_checkpoints(const std::string& run_dir) {
  const Said said = run("$NSP checkpoint verify " + run_dir);
  EXPECT_EQ(said.code, 0) << said.out;
}

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

// The weights of a bf16 run in its checkpoint are the fp32 masters, and not what bf16 leaves of them.
void expect_masters(const Tensors& tensors) {
  int weights = 0;
  for (const auto& [name, values] : tensors) {
    if (name.rfind("/model/", 0) != 0 && name.find("/weights/") == std::string::npos) continue;
    ++weights;
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float x) { return from_bf16(to_bf16(x)) != x; })) << name << " is in bf16";
  }
  EXPECT_GE(weights, 28);
}

struct Setting {
  const char* name;
  int ranks;
  std::string options;
};

class Killed : public testing::TestWithParam<Setting> {
 protected:
  static constexpr int steps = 40, saved = 20;
  static std::string command(const std::string& run_dir) {
    return ranks(GetParam().ranks) + " " + GetParam().options + " --train.checkpoint_every 20 --train.eval_every 8" +
           with(tiny_run(run_dir, steps), "--train.global_batch", longer_batch);
  }
  // True if the run was killed between its first checkpoint and its end.
  static bool start_and_kill(const std::string& run_dir, int after_ms) {
    Background job(command(run_dir));
    EXPECT_TRUE(job.wait_for(step_text(25, steps), patience));
    pause_ms(after_ms);
    kill_tree(job.pid());
    const Said said = job.wait(10);
    EXPECT_EQ(said.code, 128 + SIGKILL) << said.out;
    return !fs::exists(checkpoint(run_dir, steps) + "/manifest.h5");
  }
};

TEST_P(Killed, GoesOnBitForBit) {
  const TempFolder folder;
  const std::string whole = folder / "whole";
  const Said uninterrupted = run(command(whole), patience);
  ASSERT_EQ(uninterrupted.code, 0) << uninterrupted.out;

  // A machine that is busy may let the run end before it is killed; then there was nothing to test, and it is tried again.
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed of the moment of the kill: " + std::to_string(seed));
  std::mt19937 random(seed);
  std::string run_dir;
  bool killed = false;
  for (int attempt = 0; attempt < 3 && !killed; ++attempt) {
    run_dir = folder / ("killed" + std::to_string(attempt));
    killed = start_and_kill(run_dir, static_cast<int>(random() % 40));
  }
  ASSERT_TRUE(killed) << "the run was complete before it could be killed";

  const Said again = run(command(run_dir), patience);
  ASSERT_EQ(again.code, 0) << again.out;
  EXPECT_EQ(again.count("resumed from step 20 "), 1) << again.out;
  EXPECT_FALSE(again.contains("plan differs")) << again.out;
  EXPECT_EQ(records(run_dir, "resume").size(), 1u);
  EXPECT_EQ(losses(run_dir, steps), losses(whole, steps));
  const std::vector<std::string> lines = records(whole, "step");
  EXPECT_LT(number(lines.back(), "loss"), number(lines.front(), "loss"));
  const Tensors expected = read_checkpoint(whole, steps), found = read_checkpoint(run_dir, steps);
  EXPECT_GE(expected.size(), 3 * 28u);  // weights and two moments of 28 tensors
  if (GetParam().options.find("bf16") != std::string::npos) expect_masters(expected);
  EXPECT_EQ(differences(expected, found), "");
  EXPECT_EQ(read_scalars(whole, steps), read_scalars(run_dir, steps));
}

INSTANTIATE_TEST_SUITE_P(
    Resume, Killed,
    testing::Values(Setting{"DdpDegree1", 2, "--plugins ddp"}, Setting{"DdpDegree2", 4, "--plugins ddp,autosp --autosp.degree 2"},
                    Setting{"DeslocDegree1", 2, "--plugins desloc --desloc.kx 3 --desloc.ku 9 --desloc.kv 18"},
                    Setting{"DeslocDegree2", 4, "--plugins desloc,autosp --autosp.degree 2 --desloc.kx 3 --desloc.ku 9 --desloc.kv 18"},
                    Setting{"Bf16DdpDegree2", 2, "--plugins ddp,autosp --autosp.degree 2 --train.dtype bf16"},
                    Setting{"Bf16DeslocDegree1", 2, "--plugins desloc --desloc.kx 3 --desloc.ku 9 --desloc.kv 18 --train.dtype bf16"}),
    [](const auto& info) { return std::string(info.param.name); });

// Until a checkpoint is being written: its folder is there, and the manifest that completes it is not.
bool wait_for_unfinished(const std::string& folder) {
  for (int ms = 0; ms < 1000 * static_cast<int>(patience); ++ms) {
    if (fs::exists(folder + "/manifest.h5")) return false;
    if (fs::exists(folder)) return true;
    pause_ms(1);
  }
  return false;
}

TEST(KilledWhileItWritesACheckpoint, GoesOnFromTheOneBefore) {
  constexpr int steps = 30;
  const TempFolder folder;
  const auto command = [](const std::string& run_dir) {
    return ranks(2) + " --plugins desloc --desloc.kx 3 --desloc.ku 9 --desloc.kv 18 --train.checkpoint_every 10" + tiny_run(run_dir, steps);
  };
  const std::string whole = folder / "whole", torn = folder / "torn";
  ASSERT_EQ(run(command(whole), patience).code, 0);
  bool unfinished = false;
  for (int attempt = 0; attempt < 5 && !unfinished; ++attempt) {
    fs::remove_all(torn);
    Background job(command(torn));
    ASSERT_TRUE(wait_for_unfinished(checkpoint(torn, 20))) << "no checkpoint was seen while it was written";
    kill_tree(job.pid());
    job.wait(10);
    unfinished = !fs::exists(checkpoint(torn, 20) + "/manifest.h5");
  }
  ASSERT_TRUE(unfinished) << "the checkpoint was complete before the run could be killed";
  const Said again = run(command(torn), patience);
  ASSERT_EQ(again.code, 0) << again.out;
  EXPECT_EQ(again.count("resumed from step 10 "), 1) << again.out;
  EXPECT_EQ(losses(torn, steps), losses(whole, steps));
  EXPECT_EQ(differences(read_checkpoint(whole, steps), read_checkpoint(torn, steps)), "");
  expect_good_checkpoints(torn);
}

// Another number of processes each time, then other plug-ins; what becomes of each state is printed once and logged.
TEST(AnotherLayout, EachStateIsMergedOrNewOrDroppedAndSaidOnce) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  const auto start = [&](int processes, const std::string& plugins, int steps) {
    const Said said = run(ranks(processes) + " --plugins " + plugins + tiny_run(run_dir, steps), patience);
    EXPECT_EQ(said.code, 0) << said.out;
    return said;
  };
  start(2, "desloc --desloc.kx 3 --desloc.ku 9 --desloc.kv 18", 10);
  Said said = start(3, "desloc", 12);
  for (const char* kind : {"weights", "adamw.m", "adamw.v"})
    EXPECT_EQ(said.count("\n  " + std::string(kind) + ": weighted mean of 2 replicas\n"), 1) << said.out;
  EXPECT_TRUE(said.contains("shares: 2 2 -> 2 1 1")) << said.out;
  said = start(1, "desloc", 14);
  EXPECT_EQ(said.count("\n  weights: weighted mean of 3 replicas\n"), 1) << said.out;
  said = start(2, "desloc,sgd", 16);  // sgd has no second moment, and nobody can take back the kv that was given
  EXPECT_EQ(said.count("\n  sgd.momentum: not in the checkpoint, starts as new\n"), 1) << said.out;
  EXPECT_EQ(said.count("\n  adamw.v: dropped, nothing in this run uses it\n"), 1) << said.out;
  said = start(2, "ddp,adamw", 18);
  EXPECT_TRUE(said.contains("plugins: desloc,dp,resident,sgd -> ddp,dp,resident,adamw")) << said.out;
  const std::vector<std::string> resumed = records(run_dir, "resume");
  ASSERT_EQ(resumed.size(), 4u);
  EXPECT_NE(resumed[0].find(R"("replicas_before":2,"replicas":3,)"), std::string::npos) << resumed[0];
  EXPECT_NE(resumed[0].find(R"({"kind":"adamw.m","from":"mean of 2"})"), std::string::npos) << resumed[0];
  EXPECT_NE(resumed[2].find(R"("dropped":["adamw.m","adamw.v"])"), std::string::npos) << resumed[2];
  EXPECT_NE(resumed[3].find(R"({"kind":"adamw.v","from":"new"})"), std::string::npos) << resumed[3];
  losses(run_dir, 18);
}

// run.resume names a checkpoint of another run: where the new run begins, however often the command is given.
TEST(Fork, TheSameCommandAgainGoesOn) {
  const TempFolder folder;
  const auto start = [&](const std::string& run_dir, int steps, const std::string& from) {
    const Said said = run(ranks(2) + (from.empty() ? "" : " --run.resume " + from) + tiny_run(folder / run_dir, steps), patience);
    EXPECT_EQ(said.code, 0) << said.out;
    return said;
  };
  const auto resumed = [](const Said& said, int step) { return said.count("resumed from step " + std::to_string(step) + " ") == 1; };
  start("a", 4, "");
  start("b", 2, "");
  const std::string fork = checkpoint(folder / "a", 4);
  Said said = start("f", 6, fork);
  EXPECT_TRUE(resumed(said, 4)) << said.out;
  said = start("f", 8, folder / "b/../a/checkpoints/./step_00000004/");
  EXPECT_TRUE(resumed(said, 6) && said.contains("goes on from its own step 6. ")) << said.out;
  said = start("f", 9, "");  // what the run was forked from outlives a start without run.resume
  EXPECT_TRUE(resumed(said, 8)) << said.out;
  fs::rename(folder / "a", folder / "gone");  // and needs it no longer
  said = start("f", 10, fork);
  EXPECT_TRUE(resumed(said, 9)) << said.out;
  said = start("f", 4, folder / "b");  // another fork is one
  EXPECT_TRUE(resumed(said, 2) && !said.contains("goes on from its own")) << said.out;
  said = start("f", 5, checkpoint(folder / "f", 4));  // a checkpoint of the run itself: back to it, each time
  EXPECT_TRUE(resumed(said, 4)) << said.out;
  said = start("f", 5, checkpoint(folder / "f", 4));
  EXPECT_TRUE(resumed(said, 4)) << said.out;
  said = start("f", 6, folder / "b");
  EXPECT_TRUE(resumed(said, 5)) << said.out;
}

// A damaged checkpoint of a fork that is its only one: the run begins at the fork again, not at what the directory held before.
TEST(Fork, NeverGoesOnFromWhatWasThereBefore) {
  const TempFolder folder;
  const std::string options = "--train.checkpoint_every 2";
  ASSERT_EQ(run("$NSP" + tiny_run(folder / "a", 4), patience).code, 0);
  ASSERT_EQ(run("$NSP" + tiny_run(folder / "f", 3), patience).code, 0);
  const std::string again = "$NSP" + tiny_run(folder / "f", 8) + options + " --run.resume " + folder / "a";
  ASSERT_EQ(run(with(again, "--train.steps", "6"), patience).code, 0);
  const auto damage = [&](int step) {
    for (const auto& entry : fs::directory_iterator(checkpoint(folder / "f", step)))
      if (entry.path().filename() != "manifest.h5") fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  };
  damage(6);
  const Said said = run(again, patience);
  EXPECT_TRUE(said.contains("passed over") && said.contains("resumed from step 4 ")) << said.out;
  EXPECT_FALSE(said.contains("its own step 3")) << said.out;
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
    EXPECT_TRUE(fs::exists(checkpoint(run_dir(), step) + "/manifest.h5")) << stopped.out;
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
  ASSERT_TRUE(wait_for_unfinished(checkpoint(run_dir(), 6))) << "no checkpoint was seen while it was written";
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
