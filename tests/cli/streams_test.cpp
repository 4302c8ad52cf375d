// Standard streams that are closed, whose reader goes away, or whose terminal is hung up while nsp_app runs.
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

constexpr double patience = 300;  // seconds
constexpr int long_run = 20000;   // steps: a minute, so that it cannot be over before it is stopped

std::string app() {
  return std::string(std::getenv("NSP_TEST_BIN_DIR")) + "/nsp_app";
}

// A command line for bash. Its code is that of its first pipe's first command.
Said shell(const std::string& line) {
  return run("bash -c '" + line + "; exit ${PIPESTATUS[0]}'", patience);
}

void expect_stopped_at_last_record(const std::string& run_dir) {
  const std::vector<std::string> steps = records(run_dir, "step"), saved = records(run_dir, "checkpoint");
  ASSERT_FALSE(steps.empty() || saved.empty());
  EXPECT_EQ(field(saved.back(), "step"), field(steps.back(), "step"));
  const Said verified = run("$NSP checkpoint verify " + run_dir, patience);
  EXPECT_EQ(verified.code, 0) << verified.out;
}

TEST(Streams, FilesOfTheRunDoNotTakeThePlaceOfClosedOnes) {
  for (const char* closed : {"<&- >&- 2>&-", ">&- 2>&-", "2>&-"}) {
    const TempFolder folder;
    EXPECT_EQ(run("$NSP" + tiny_run(folder / "run", 5) + closed, patience).code, 0) << closed;
    losses(folder / "run", 5);
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "run")) {
      if (!entry.is_regular_file() || entry.path().filename() == "plan.txt") continue;
      ++files;
      const std::string content = read_file(entry.path());
      for (const char* printed : {"B/tok", "nats per token", "hint: "})
        EXPECT_EQ(content.find(printed), std::string::npos) << entry.path() << " with " << closed << " holds: " << printed;
    }
    EXPECT_GE(files, 4);
  }
}

TEST(Streams, TextForAClosedOneIsStillAnError) {
  const Said said = run("$NSP plugins >&-");
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(said.contains("cannot write standard output: Bad file descriptor")) << said.out;
}

TEST(Streams, TrainingOutlivesItsReader) {
  const TempFolder folder;
  const Said said = shell(app() + tiny_run(folder / "run", 30) + "2>&1 | head -n 1");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("\n"), 1) << said.out;
  losses(folder / "run", 30);
  expect_stopped_at_last_record(folder / "run");
}

TEST(Streams, OtherVerbsEndQuietlyWithTheirReader) {
  const Said said = shell("{ sleep 0.5; exec " + app() + " plugins; } | true");
  EXPECT_EQ(said.code, 128 + SIGPIPE);
  EXPECT_EQ(said.out, "");
}

TEST(Hangup, StopsWithACheckpoint) {
  const TempFolder folder;
  Background job("$NSP" + tiny_run(folder / "run", long_run) + "--train.eval_every 0");
  ASSERT_TRUE(job.wait_for("step      5/", patience));
  job.signal(SIGHUP);
  const Said said = job.wait(patience);
  EXPECT_EQ(said.code, 75) << said.out;
  EXPECT_TRUE(said.contains("signal HUP")) << said.out;
  expect_stopped_at_last_record(folder / "run");
}

TEST(Hangup, OfTheTerminalStopsWithACheckpoint) {
  const TempFolder folder;
  const std::string command = "exec " + app() + tiny_run(folder / "run", long_run) + "--train.eval_every 0";
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  std::string out;
  char block[4096];
  for (ssize_t got; out.find("/20000  [") == out.npos && (got = ::read(terminal, block, sizeof block)) > 0;)
    out.append(block, static_cast<std::size_t>(got));
  ::close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), 75) << out;
  expect_stopped_at_last_record(folder / "run");
}

TEST(Hangup, IsIgnoredUnderNohup) {
  const TempFolder folder;
  const int steps = 200;
  Background job("nohup $NSP" + tiny_run(folder / "run", steps) + "--train.eval_every 0");
  ASSERT_TRUE(job.wait_for("step      5/", patience));
  job.signal(SIGHUP);
  const Said said = job.wait(patience);
  EXPECT_EQ(said.code, 0) << said.out;
  losses(folder / "run", steps);
}

}  // namespace
}  // namespace nsp::test
