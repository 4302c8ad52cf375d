// The clock on the wall is set while a run goes on: nothing that measures time looks at it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

constexpr int steps = 14;

TEST(Clock, JumpsByHoursChangeNothing) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  // Steps of 0.3 s: both jumps lie between them. Time-outs and limits are far shorter than the jumps, and longer than the run.
  const Said said =
      run("env OMP_NUM_THREADS=1 mpirun -x LD_PRELOAD=" NSP_CLOCK_JUMP " -np 2 $NSP" + faulty("ddp", "sleep", 0, 1, 1000) +
              "--plugins faulty --train.max_hours 1 --comm.timeout 600s --train.checkpoint_every 5" + tiny_run(run_dir, steps),
          patience);
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_FALSE(said.contains("max_hours")) << said.out;
  losses(run_dir, steps);
  for (const std::string& line : records(run_dir, "step")) {
    EXPECT_GE(number(line, "step_ms"), 100) << line;
    EXPECT_LT(number(line, "step_ms"), 60000) << line;
  }
  const std::string end = records(run_dir, "end").at(0);
  EXPECT_GT(number(end, "seconds"), 2) << end;
  EXPECT_LT(number(end, "seconds"), 300) << end;
  EXPECT_TRUE(said.contains("left 0")) << said.out;
  for (const std::string& line : records(run_dir, "checkpoint")) EXPECT_LT(number(line, "seconds"), 300) << line;
  expect_good_checkpoints(run_dir);
}

TEST(Clock, TheShimWorks) {
  const Said said = run("env LD_PRELOAD=" NSP_CLOCK_JUMP
                        " bash -c 'printf -v a \"%(%s)T\" -1; sleep 2.5; printf -v b \"%(%s)T\" -1; echo \"jumped $((b - a))\"'",
                        30);
  EXPECT_TRUE(said.contains("jumped -1799")) << said.out;
}

}  // namespace
}  // namespace nsp::test
