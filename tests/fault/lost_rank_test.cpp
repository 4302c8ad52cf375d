// A rank that is killed, stops, hangs or fails: the others do not wait for it longer than comm.timeout, and the run goes on after it.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "tests/cli/run_files.hpp"
#include "tests/fault/fault_run.hpp"

namespace nsp::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int steps = 30, saved = 5;
constexpr double timeout = 3;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Layout {
  const char* name;
  int ranks;
  const char* inner;     // sync policy
  const char* parallel;  // "" or ",autosp" with its options
  int rank;              // that is lost
};

const Layout layouts[] = {
    {"DdpOf2", 2, "ddp", "", 1}, {"DeslocOf3", 3, "desloc", "", 1}, {"DeslocDegree2Of4", 4, "desloc", ",autosp --autosp.degree 2", 2}};
std::string name_of_layout(const testing::TestParamInfo<Layout>& info) {
  return info.param.name;
}

std::string options(const Layout& layout, const std::string& run_dir) {
  return std::string(" --plugins faulty") + layout.parallel + " --faulty.kx 1 --faulty.ku 2 --faulty.kv 4 --train.checkpoint_every 5 " +
         tiny_run(run_dir, steps);
}

class LostRank : public testing::TestWithParam<Layout> {
 protected:
  std::string run_dir() const { return folder_ / "run"; }
  std::string healthy() const {
    return ranks(GetParam().ranks) + faulty(GetParam().inner, "nan", 1000, 0) + options(GetParam(), run_dir());
  }
  TempFolder folder_;
};

// Every rank but the lost one ended with 6 and said which call it waited in, and one of them whom for.
void expect_timeouts(const Said& said, int ranks, int lost) {
  SCOPED_TRACE(said.out);
  EXPECT_FALSE(said.timed_out);
  EXPECT_EQ(said.code, 6);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == lost) continue;
    EXPECT_EQ(said.count("rank " + std::to_string(rank) + " ended with 6"), 1);
    const std::string text = "nsp_app: error: rank " + std::to_string(rank) + " on ";
    ASSERT_EQ(said.count(text), 1);
    const std::size_t at = said.out.find(text);
    const std::string line = said.out.substr(at, said.out.find('\n', at) - at);
    for (const char* part : {"comm.timeout = 3 s", " on communicator '", "' (tag ", ") waits for rank"})
      EXPECT_NE(line.find(part), std::string::npos) << part << " is not in: " << line;
  }
  EXPECT_GE(said.count(") waits for rank " + std::to_string(lost) + "."), 1);
  EXPECT_TRUE(said.contains("What to do"));
}

TEST_P(LostRank, StoppedInAStep) {
  const Layout& p = GetParam();
  Background job(told_ranks(p.ranks) + faulty(p.inner, "stop", 7, p.rank) + "--comm.timeout 3s" + options(p, run_dir()));
  ASSERT_TRUE(job.wait_for("faulty: stop on rank", patience)) << job.wait(1).out;
  const auto begin = Clock::now();
  const Said said = job.wait(patience);
  EXPECT_LT(since(begin), timeout + 5);
  expect_timeouts(said, p.ranks, p.rank);
  expect_goes_on(healthy(), run_dir(), saved, steps);
}

TEST_P(LostRank, KilledInAStep) {
  const Layout& p = GetParam();
  Background job(ranks(p.ranks) + faulty(p.inner, "kill", 7, p.rank) + options(p, run_dir()));
  ASSERT_TRUE(job.wait_for("faulty: kill on rank", patience)) << job.wait(1).out;
  const auto begin = Clock::now();
  const Said said = job.wait(patience);
  EXPECT_LT(since(begin), 10) << "the others waited for the dead";
  EXPECT_EQ(said.code, 128 + SIGKILL) << said.out;
  expect_goes_on(healthy(), run_dir(), saved, steps);
}

INSTANTIATE_TEST_SUITE_P(Fault, LostRank, testing::ValuesIn(layouts), name_of_layout);

class Throwing : public testing::TestWithParam<const char*> {};

TEST_P(Throwing, OneTextAndItsCodeForTheWholeJob) {
  const bool diverged = GetParam() == std::string("throw_diverged");
  const TempFolder folder;
  for (int rank : {0, 1}) {
    const std::string run_dir = folder / ("rank" + std::to_string(rank));
    const Layout layout{"", 2, "desloc", "", 1};
    const auto begin = Clock::now();
    const Said said = run(ranks(2) + faulty("desloc", GetParam(), 7, rank) + options(layout, run_dir), patience);
    SCOPED_TRACE(said.out);
    EXPECT_LT(since(begin), 60);
    EXPECT_EQ(said.code, diverged ? 5 : 1);
    EXPECT_EQ(said.count("nsp_app: error:"), 1);
    EXPECT_TRUE(said.contains(diverged ? "found nonsense" : "a plug-in gave up"));
    EXPECT_EQ(said.contains("(rank 1 on "), rank == 1);
    if (rank == 1) expect_goes_on(ranks(2) + faulty("desloc", "nan", 1000, 0) + options(layout, run_dir), run_dir, saved, steps);
  }
}

INSTANTIATE_TEST_SUITE_P(Fault, Throwing, testing::Values("throw", "throw_diverged"),
                         [](const auto& info) { return std::string(info.param); });

TEST(StoppedRank, InAnEvaluation) {
  const TempFolder folder;
  const std::string run_dir = folder / "run",
                    healthy = " --plugins ddp --train.checkpoint_every 5 --train.eval_every 8" + tiny_run(run_dir, 10);
  Background job(told_ranks(3) + " --comm.timeout 3s" +
                 with(with(healthy, "--data.val_path", long_token_file(folder, 40)), "--train.eval_batches", "1000000"));
  ASSERT_TRUE(job.wait_for(step_text(8, 10), patience)) << job.wait(1).out;
  pause_ms(100);
  EXPECT_FALSE(job.wait_for("step      8  validation loss", 0.01)) << "the evaluation was over before the rank stopped";
  const pid_t lost = process_of_rank(job.pid(), 2);
  ASSERT_GT(lost, 0);
  ::kill(lost, SIGSTOP);
  const auto begin = Clock::now();
  const Said said = job.wait(patience);
  EXPECT_LT(since(begin), timeout + 5);
  expect_timeouts(said, 3, 2);
  expect_goes_on(ranks(3) + healthy, run_dir, saved, 10);
}

TEST(StoppedRank, InACheckpoint) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  const std::string healthy =
      " --plugins desloc --train.checkpoint_every 5 --desloc.kx 3 --desloc.ku 6 --desloc.kv 6" + tiny_run(run_dir, 12);
  Background job(told_ranks(2) + " --comm.timeout 3s" + healthy);
  for (int ms = 0; ms < 1000 * patience && !std::filesystem::exists(step_folder(run_dir, 10)); ++ms) pause_ms(1);
  ASSERT_FALSE(is_there(run_dir, 10)) << "the checkpoint was complete before the rank stopped";
  const pid_t lost = process_of_rank(job.pid(), 1);
  ASSERT_GT(lost, 0);
  ::kill(lost, SIGSTOP);
  const auto begin = Clock::now();
  const Said said = job.wait(patience);
  EXPECT_LT(since(begin), timeout + 5);
  expect_timeouts(said, 2, 1);
  // The rank may have stopped when its part was done; then the checkpoint is complete, or it never will be.
  expect_goes_on(ranks(2) + healthy, run_dir, is_there(run_dir, 10) ? 10 : saved, 12);
}

}  // namespace
}  // namespace nsp::test
