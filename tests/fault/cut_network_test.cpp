// A host that is cut off: two network namespaces on this machine, and the link of the second one goes down in mid-run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int steps = 30;

// Two hosts by tests/lab/hosts.sh.
class TwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = try_to(lab("up")); !why.empty()) {
      run(lab("down"));
      GTEST_SKIP() << "cannot make network namespaces here (root and iproute2 are needed): " << why;
    }
  }
  void TearDown() override { run(lab("down"), 60); }
  static std::string lab(const std::string& verb) {
    return std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/lab/hosts.sh " + verb + " " + std::to_string(getpid());
  }
  // mpirun itself learns by the keep-alive of TCP that it lost its daemon; by default after minutes.
  static std::string launcher(const std::string& program) {
    return "env OMP_NUM_THREADS=1 " + lab("mpirun") +
           " --mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 2 -np 2 " + program;
  }
  std::string options(const std::string& run_dir) const {
    return "--plugins faulty --train.checkpoint_every 5 " + tiny_run(run_dir, steps);
  }

  TempFolder folder_;
};

TEST_F(TwoHosts, ACutLinkEndsAllRanksAndTheRunGoesOn) {
  const std::string run_dir = folder_ / "run";
  Background job(launcher(told_program()) + faulty("ddp", "sleep", 7, 1, 1000) + "--comm.timeout 3s " + options(run_dir));
  ASSERT_TRUE(job.wait_for(step_text(8, steps), patience)) << job.wait(1).out;
  must_run(lab("cut"));
  const auto begin = Clock::now();
  const Said said = job.wait(patience);
  SCOPED_TRACE(said.out);
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 3 + 5 + 2);  // the launcher looks every second
  // The launcher's own code where it noticed first that its daemon is gone.
  EXPECT_TRUE(said.code == 6 || said.code == 205) << said.code;
  EXPECT_EQ(said.count("rank 0 ended with 6"), 1);
  EXPECT_TRUE(said.contains("comm.timeout = 3 s") && said.contains(") waits for rank 1.") && said.contains("its network are up"));
  // Nobody is left behind the cut, though nobody could tell it anything.
  std::string left = "?";
  for (int second = 0; second < 20 && !left.empty(); ++second) {
    left = run("bash -c 'for p in $(ip netns pids nsp" + std::to_string(getpid()) + "b); do cat /proc/$p/comm; done | grep nsp_app'").out;
    if (!left.empty()) pause_ms(500);
  }
  EXPECT_EQ(left, "");
  run(lab("down"), 60);
  must_run(lab("up"));
  expect_goes_on(launcher("$NSP") + faulty("ddp", "nan", 1000, 0) + options(run_dir), run_dir, 5, steps);
}

}  // namespace
}  // namespace nsp::test
