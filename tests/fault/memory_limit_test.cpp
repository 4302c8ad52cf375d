// A control group that allows less memory than the plan needs: the run is refused before it allocates anything.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

// A group of its own below this process's group, version 1 or 2.
class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t bytes) {
    for (const std::string& mount : {std::string("/sys/fs/cgroup/memory"), std::string("/sys/fs/cgroup")}) {
      const bool first = fs::exists(mount + "/memory.limit_in_bytes");
      if (!first && read_file(mount + "/cgroup.subtree_control").find("memory") == std::string::npos) continue;
      path_ = mount + "/nsp_test_" + std::to_string(getpid());
      const std::string limit = path_ + (first ? "/memory.limit_in_bytes" : "/memory.max");
      reason_ = try_to("mkdir " + path_ + " && echo " + std::to_string(bytes) + " > " + limit);
      if (reason_.empty()) return;
    }
    if (reason_.empty()) reason_ = "no memory controller in /sys/fs/cgroup";
  }
  ~MemoryGroup() { try_to("rmdir " + path_); }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  const std::string& reason() const { return reason_; }  // why there is none; empty: there is one
  std::string inside(const std::string& command) const { return "bash -c 'echo $$ > " + path_ + "/cgroup.procs && exec " + command + "'"; }

 private:
  std::string path_, reason_;
};

TEST(MemoryLimit, BelowThePlanIsRefusedWith3) {
  const MemoryGroup group(int64_t{700} << 20);
  if (!group.reason().empty()) GTEST_SKIP() << "cannot make a control group here: " << group.reason();
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  const std::string sizes =
      " --model.layers 12 --model.hidden 768 --model.heads 12 --model.vocab 8000 --train.global_batch 4 --train.steps 2"
      " --data.path " +
      std::string(std::getenv("NSP_TEST_SOURCE_DIR")) +
      "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin --run.dir " + run_dir;
  for (const std::string& launcher : {std::string("env OMP_NUM_THREADS=1 $NSP"), std::string("env OMP_NUM_THREADS=1 mpirun -np 2 $NSP")}) {
    const Said said = run("env NSP=$NSP " + group.inside(launcher + sizes), patience);
    SCOPED_TRACE(said.out);
    EXPECT_EQ(said.code, 3);
    EXPECT_EQ(said.count("nsp_app: error: the plan does not fit into host memory"), 1);
    EXPECT_TRUE(said.contains("a control group limits this host's ranks to"));
    EXPECT_TRUE(said.contains("700.0 MiB"));
    EXPECT_FALSE(fs::exists(run_dir + "/checkpoints"));
    EXPECT_FALSE(fs::exists(run_dir + "/lock"));
  }
  // What fits into the limit trains in it.
  const Said fits = run("env NSP=$NSP " + group.inside("$NSP" + tiny_run(folder / "small", 2)), patience);
  EXPECT_EQ(fits.code, 0) << fits.out;
}

// A run whose usual micro-batch does not fit takes the largest that does, the same on all ranks, and so does the one that resumes it.
TEST(MemoryLimit, AnAutomaticMicroBatchGivesWay) {
  const MemoryGroup group(int64_t{700} << 20);
  if (!group.reason().empty()) GTEST_SKIP() << "cannot make a control group here: " << group.reason();
  const TempFolder folder;
  const std::string start =
      "env OMP_NUM_THREADS=1 mpirun -np 2 $NSP --model.layers 24 --model.hidden 128 --model.heads 2 --model.context 64 --model.vocab 8000 "
      "--train.global_batch 64 --train.threads 1 --train.eval_batches 1 --data.path " +
      std::string(std::getenv("NSP_TEST_SOURCE_DIR")) +
      "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin --run.dir " + (folder / "run") + " --train.steps ";
  const Said first = run("env NSP=$NSP " + group.inside(start + "2"), patience);
  ASSERT_EQ(first.code, 0) << first.out;
  EXPECT_TRUE(first.contains("at most 16 at once (the usual 32 do not fit)")) << first.out;
  const Said second = run("env NSP=$NSP " + group.inside(start + "3"), patience);
  EXPECT_EQ(second.code, 0) << second.out;
  EXPECT_FALSE(second.contains("the plan differs from the checkpoint's")) << second.out;
}

}  // namespace
}  // namespace nsp::test
