// Runs that are killed, cut or forked and go on when the same command is given again, and those that go on in another layout.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

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
    return !fs::exists(step_folder(run_dir, steps) + "/manifest.h5");
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
    ASSERT_TRUE(wait_for_unfinished(step_folder(torn, 20))) << "no checkpoint was seen while it was written";
    kill_tree(job.pid());
    job.wait(10);
    unfinished = !fs::exists(step_folder(torn, 20) + "/manifest.h5");
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
  const std::string fork = step_folder(folder / "a", 4);
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
  said = start("f", 5, step_folder(folder / "f", 4));  // a checkpoint of the run itself: back to it, each time
  EXPECT_TRUE(resumed(said, 4)) << said.out;
  said = start("f", 5, step_folder(folder / "f", 4));
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
    for (const auto& entry : fs::directory_iterator(step_folder(folder / "f", step)))
      if (entry.path().filename() != "manifest.h5") fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  };
  damage(6);
  const Said said = run(again, patience);
  EXPECT_TRUE(said.contains("passed over") && said.contains("resumed from step 4 ")) << said.out;
  EXPECT_FALSE(said.contains("its own step 3")) << said.out;
}

}  // namespace
}  // namespace nsp::test
