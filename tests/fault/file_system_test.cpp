// A file system that is full or read-only: checkpoints fail one by one, the log waits, training goes on, and nothing that was
// written before is lost.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

constexpr int steps = 12;

// A small file system of its own.
class SmallFileSystem : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = try_to("mount -t tmpfs -o size=4500k nsp_test " + folder_.path()); !why.empty())
      GTEST_SKIP() << "cannot mount a small file system here: " << why;
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) must_run("umount -l " + folder_.path());
  }
  void remount(const std::string& options) { must_run("mount -o remount," + options + " " + folder_.path()); }
  // At once, while a run goes on; refused while it has a file open for writing.
  void make_read_only() {
    int failed = -1;
    for (int ms = 0; ms < 2000 && failed != 0; ++ms) {
      failed = ::mount("nsp_test", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr);
      if (failed != 0) pause_ms(1);
    }
    ASSERT_EQ(failed, 0) << std::strerror(errno);
  }
  std::string run_dir() const { return folder_ / "run"; }
  // Two ranks, of which one takes a while for each step.
  std::string slow(const std::string& more, int of_steps) const {
    return ranks(2) + faulty("ddp", "sleep", 0, 1, 1000) + "--plugins faulty --train.eval_every 0 --run.tensorboard false " + more +
           tiny_run(run_dir(), of_steps);
  }

  TempFolder folder_;
  bool mounted_ = false;
};

// A checkpoint of the tiny model takes 1.7 MB: two fit and a third does not. One rank sees that before it writes; of two ranks
// each finds room for its own half, and the disk is full in the middle.
class FullDisk : public SmallFileSystem, public testing::WithParamInterface<int> {};

TEST_P(FullDisk, CheckpointsFailAndTrainingGoesOn) {
  const std::string command = ranks(GetParam()) + " --train.checkpoint_every 3 --run.tensorboard false" + tiny_run(run_dir(), steps);
  const Said full = run(command, patience);
  SCOPED_TRACE(full.out);
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.count("nsp_app: error:"), 1);
  EXPECT_TRUE(full.contains("the last checkpoint of the run could not be written") && full.contains("Make room"));
  for (int step : {9, 12}) {
    EXPECT_EQ(full.count("the checkpoint of step " + std::to_string(step) + " failed"), 1);
    EXPECT_FALSE(std::filesystem::exists(step_folder(run_dir(), step)));
  }
  EXPECT_TRUE(full.contains(GetParam() == 1 ? "there is no room" : "No space left on device") || full.contains("there is no room"));
  EXPECT_TRUE(full.contains(step_text(12, steps))) << "training did not go on";
  EXPECT_TRUE(is_there(run_dir(), 3) && is_there(run_dir(), 6));
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/lock"));
  remount("size=40m");
  expect_goes_on(command, run_dir(), 6, steps);
}

INSTANTIATE_TEST_SUITE_P(Fault, FullDisk, testing::Values(1, 2), [](const auto& info) { return std::to_string(info.param) + "Ranks"; });

TEST_F(SmallFileSystem, TheLogWaitsForRoom) {
  Background job(slow("--train.checkpoint_every 0", 24));
  ASSERT_TRUE(job.wait_for(step_text(2, 24), patience)) << job.wait(1).out;
  try_to("head -c 10M /dev/zero > " + (folder_ / "filler"));  // fills it, and fails
  ASSERT_TRUE(job.wait_for("cannot write " + run_dir() + "/metrics.jsonl", patience)) << job.wait(1).out;
  ASSERT_TRUE(std::filesystem::remove(folder_ / "filler"));
  const Said said = job.wait(patience);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("cannot write"), 1) << said.out;
  EXPECT_TRUE(said.contains("is written again")) << said.out;
  losses(run_dir(), 24);
  EXPECT_EQ(records(run_dir(), "end").size(), 1u);
  expect_good_checkpoints(run_dir());
}

TEST_F(SmallFileSystem, FullFromTheStart) {
  std::filesystem::create_directory(run_dir());
  try_to("head -c 10M /dev/zero > " + (folder_ / "filler"));
  const Said said = run(ranks(2) + tiny_run(run_dir(), steps), patience);
  EXPECT_EQ(said.code, 1) << said.out;
  EXPECT_EQ(said.count("nsp_app: error:"), 1) << said.out;
  EXPECT_TRUE(said.contains("No space left on device")) << said.out;
  EXPECT_TRUE(said.contains(run_dir())) << said.out;
}

TEST_F(SmallFileSystem, FullWhenTheRunIsResumed) {
  ASSERT_EQ(run("$NSP" + tiny_run(run_dir(), 4), patience).code, 0);
  const std::string log = read_file(run_dir() + "/metrics.jsonl");
  // Room for the lock, not for the log, which is written anew without what came after the checkpoint.
  must_run("head -c 100000 /dev/zero >> " + run_dir() + "/metrics.jsonl");
  try_to("head -c 10M /dev/zero > " + (folder_ / "filler"));
  const Said said = run("$NSP" + tiny_run(run_dir(), 8), patience);
  EXPECT_EQ(said.code, 1) << said.out;
  EXPECT_EQ(said.count("nsp_app: error:"), 1) << said.out;
  EXPECT_EQ(read_file(run_dir() + "/metrics.jsonl").substr(0, log.size()), log);
  ASSERT_TRUE(std::filesystem::remove(folder_ / "filler"));
  expect_goes_on("$NSP" + tiny_run(run_dir(), 8), run_dir(), 4, 8);
}

TEST_F(SmallFileSystem, ReadOnlyAtTheStart) {
  std::filesystem::create_directory(run_dir());
  remount("ro");
  for (const std::string& dir : {run_dir(), folder_ / "new"}) {
    const Said said = run(ranks(2) + tiny_run(dir, steps), patience);
    EXPECT_EQ(said.code, 1) << said.out;
    EXPECT_EQ(said.count("nsp_app: error:"), 1) << said.out;
    EXPECT_TRUE(said.contains("Read-only file system") && said.contains(dir) && said.contains("permissions")) << said.out;
  }
}

TEST_F(SmallFileSystem, ReadOnlyInMidRun) {
  remount("size=40m");
  Background job(slow("--train.checkpoint_every 4", steps));
  ASSERT_TRUE(job.wait_for("step 4  checkpoint", patience)) << job.wait(1).out;
  make_read_only();
  const Said said = job.wait(patience);
  SCOPED_TRACE(said.out);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.count("nsp_app: error:"), 1);
  EXPECT_TRUE(said.contains("Read-only file system") && said.contains("the last checkpoint of the run could not be written"));
  EXPECT_TRUE(said.contains(step_text(steps, steps))) << "training did not go on";
  EXPECT_TRUE(is_there(run_dir(), 4) && !is_there(run_dir(), 8));
  remount("rw");
  expect_goes_on(slow("--train.checkpoint_every 4", steps), run_dir(), 4, steps);
}

}  // namespace
}  // namespace nsp::test
