// What a user sees on a terminal: nsp_app on a pseudo-terminal, its output put on a screen as a terminal would.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

// The output of a shell command whose standard streams are a terminal with that many columns.
std::string output_on_terminal(const std::string& command, unsigned short columns) {
  winsize size{};
  size.ws_row = 25;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    unsetenv("COLUMNS");
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  std::string out;
  char block[4096];
  for (ssize_t got; (got = ::read(terminal, block, sizeof block)) > 0;) out.append(block, static_cast<std::size_t>(got));
  int status = 0;
  waitpid(child, &status, 0);
  ::close(terminal);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << out;
  return out;
}

// Lines as they stand in the end, with wrapping at the right edge; the last one is what follows the last line feed.
std::vector<std::string> screen(const std::string& output, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  for (const char c : output) {
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      if (column == columns) lines.emplace_back(), column = 0;
      std::string& line = lines.back();
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = c;
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

int count(const std::vector<std::string>& lines, const std::string& part) {
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.find(part) != l.npos; }));
}

std::string app() {
  return std::string(std::getenv("NSP_TEST_BIN_DIR")) + "/nsp_app";
}

void expect_one_progress_line(const std::string& output, std::size_t columns) {
  const std::vector<std::string> lines = screen(output, columns);
  EXPECT_EQ(count(lines, "step 30/30  [#"), 1) << output;           // the line as it was left
  EXPECT_EQ(count(lines, "[#") + count(lines, "[."), 1) << output;  // and nothing of it anywhere else
  EXPECT_EQ(count(lines, "B/tok"), 0) << output;                    // no step lines
  for (const char* step : {"step     10  validation", "step     20  validation", "step     30  validation"})
    EXPECT_EQ(count(lines, step), 1) << output;
  for (const std::string& line : lines)  // nothing of the longer progress line is left behind a log line
    if (columns >= 140 && line.find("  validation loss") != line.npos) {
      EXPECT_TRUE(line.ends_with(" tokens")) << line;
    }
  EXPECT_EQ(lines.back(), "");  // ends with a line feed
}

TEST(Terminal, OneLineIsRewrittenAndLogLinesStayWhole) {
  const TempFolder folder;
  const std::string output = output_on_terminal(app() + tiny_run(folder / "run", 30) + "--train.eval_every 10", 160);
  expect_one_progress_line(output, 160);
  EXPECT_GT(std::count(output.begin(), output.end(), '\r'), 30);
  EXPECT_EQ(losses(folder / "run", 30).size(), 30u);
}

TEST(Terminal, TheSameThroughMpirun) {
  const TempFolder folder;
  std::string command = ranks(2);
  command.replace(command.find("$NSP"), 4, app());
  expect_one_progress_line(output_on_terminal(command + tiny_run(folder / "run", 30) + "--train.eval_every 10", 70), 70);
}

TEST(Terminal, StepLinesThatAreAskedForAppearAboveIt) {
  const TempFolder folder;
  const std::string command = app() + tiny_run(folder / "run", 30) + "--train.eval_every 0 --run.log_every 10";
  const std::vector<std::string> lines = screen(output_on_terminal(command, 200), 200);
  EXPECT_EQ(count(lines, "B/tok"), 3);
  EXPECT_EQ(count(lines, "step 30/30  [#"), 1);
}

TEST(Terminal, PrepareRewritesOneLineToo) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; text.size() < (64 << 20); ++i) text += "line " + std::to_string(i) + " of a text that takes a moment\n";
  write_file(folder / "text.txt", text);
  for (const std::size_t columns : {90, 60}) {
    const std::string out = folder / ("out" + std::to_string(columns));
    const std::string output =
        output_on_terminal(app() + " prepare --input " + (folder / "text.txt") + " --output " + out, static_cast<unsigned short>(columns));
    const std::vector<std::string> lines = screen(output, columns);
    EXPECT_EQ(count(lines, "[#"), 1) << output;
    EXPECT_EQ(count(lines, "#]  100%"), 1) << output;  // the line as it was left
    EXPECT_EQ(lines.front().rfind("preparing  [#", 0), 0u) << output;
    EXPECT_GT(std::count(output.begin(), output.end(), '['), 1) << output;  // and it grew
    EXPECT_EQ(output.find("100%"), output.rfind("100%")) << output;         // to the end and not before
    EXPECT_EQ(count(lines, "prepared  " + out.substr(0, 20)), 1) << output;
    EXPECT_EQ(lines.back(), "");
  }
}

TEST(Terminal, ElsewhereLinesArePlain) {
  const TempFolder folder;
  const Said said = run("$NSP" + tiny_run(folder / "run", 3));
  EXPECT_EQ(said.out.find('\r'), std::string::npos);
  EXPECT_EQ(said.count("B/tok"), 3);
  const std::string through_tee = output_on_terminal(app() + tiny_run(folder / "tee", 3) + " | cat", 100);
  EXPECT_EQ(through_tee.find("[#"), std::string::npos) << through_tee;
}

}  // namespace
}  // namespace nsp::test
