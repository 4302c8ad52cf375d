// Two jobs in one run directory, and what is left of a job that died there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>

#include "tests/cli/processes.hpp"
#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

constexpr int steps = 12;

std::string command(const std::string& run_dir, const std::string& fault) {
  return ranks(2) + faulty("ddp", fault, 0, 1, fault == "sleep" ? 1000 : 0) + "--plugins faulty --train.checkpoint_every 4 " +
         tiny_run(run_dir, steps);
}

TEST(TwoJobs, TheSecondIsRefusedAndTheFirstFinishes) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  Background first(command(run_dir, "sleep"));
  ASSERT_TRUE(first.wait_for(step_text(1, steps), patience)) << first.wait(1).out;
  const Said second = run(command(run_dir, "nan"), patience);
  EXPECT_EQ(second.code, 2) << second.out;
  EXPECT_EQ(second.count("nsp_app: error: another job runs in " + run_dir), 1) << second.out;
  EXPECT_EQ(second.count("nsp_app: error:"), 1) << second.out;
  EXPECT_TRUE(second.contains("process ") && second.contains("choose another run.dir")) << second.out;
  const Said said = first.wait(patience);
  EXPECT_EQ(said.code, 0) << said.out;
  losses(run_dir, steps);
  expect_good_checkpoints(run_dir);
}

TEST(TwoJobs, TheLockOfADeadProcessIsTakenOver) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  Background first(command(run_dir, "sleep"));
  ASSERT_TRUE(first.wait_for("step 4  checkpoint", patience)) << first.wait(1).out;
  kill_tree(first.pid());
  first.wait(10);
  ASSERT_TRUE(std::filesystem::exists(run_dir + "/lock"));
  const Said said = run(command(run_dir, "nan"), patience);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("was taken over: its process is gone")) << said.out;
  losses(run_dir, steps);
}

TEST(TwoJobs, AJobElsewhereHoldsTheDirectoryWhileItsHeartBeats) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  std::filesystem::create_directory(run_dir);
  const auto leave_lock = [&](int64_t age) {
    write_file(run_dir + "/lock", "host somewhere-else\npid 4321\nstart 1\nboot \njob \nsince 2026-01-31T12:00:00Z\ntoken abc\n");
    const timespec when[2] = {{std::time(nullptr) - age, 0}, {std::time(nullptr) - age, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (run_dir + "/lock").c_str(), when, 0), 0);
  };
  leave_lock(0);
  Said said = run(command(run_dir, "nan"), patience);
  EXPECT_EQ(said.code, 2) << said.out;
  EXPECT_TRUE(said.contains("process 4321 on host somewhere-else")) << said.out;
  leave_lock(3600);
  said = run(command(run_dir, "nan") + "--comm.timeout 8s", patience);  // the lock is watched for half of that
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("was taken over: its heartbeat is 36")) << said.out;
}

TEST(TwoJobs, ARunThatLostItsDirectoryEnds) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  Background first(ranks(2) + faulty("ddp", "sleep", 0, 1, 1000) + "--plugins faulty " + tiny_run(run_dir, 1000));
  ASSERT_TRUE(first.wait_for(step_text(1, 1000), patience)) << first.wait(1).out;
  write_file(run_dir + "/lock", "host somewhere-else\npid 4321\ntoken abc\n");
  const Said said = first.wait(60);  // it looks every 10 s
  EXPECT_EQ(said.code, 1) << said.out;
  EXPECT_EQ(said.count("nsp_app: error: another job has taken over"), 1) << said.out;
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/lock")) << "the other's lock is not ours to remove";
}

}  // namespace
}  // namespace nsp::test
