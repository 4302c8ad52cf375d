// nsp_app prepare as a process: memory, signals, and how it tells of its progress.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

// Text and JSONL, together the given number of MiB.
void write_corpus(const std::string& folder, int mib) {
  std::filesystem::create_directories(folder);
  std::string block;
  for (int i = 0; block.size() < (1 << 20); ++i) block += "line " + std::to_string(i * 2654435761u) + " of a text that is long enough\n";
  std::ofstream text(folder + "/text.txt", std::ios::binary), json(folder + "/documents.jsonl", std::ios::binary);
  for (int i = 0; i < mib / 2; ++i) {
    text << block;
    for (int d = 0; d < 1024; ++d)
      json << "{\"id\":" << i << ",\"text\":\"document " << d << " " << std::string(980, 'a' + d % 26) << "\\n\"}\n";
  }
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// Largest resident set of a command, in MiB.
double peak_of(const std::string& command) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", ("exec " + command + " >/dev/null").c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string app() {
  return std::string(std::getenv("NSP_TEST_BIN_DIR")) + "/nsp_app";
}

TEST(PrepareProgram, MemoryDoesNotGrowWithTheText) {
  const TempFolder folder;
  write_corpus(folder / "text", 128);
  EXPECT_LT(peak_of(app() + " prepare --input " + (folder / "text") + " --output " + (folder / "out")), 64);
}

TEST(PrepareProgram, ASignalLeavesNothingBehind) {
  const TempFolder folder;
  write_corpus(folder / "text", 64);
  for (const int signal : {SIGTERM, SIGINT}) {
    Background prepare("$NSP prepare --input " + (folder / "text") + " --output " + (folder / "out"));
    for (int i = 0; i < 20000 && names_in(folder.path()).size() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    prepare.signal(signal);
    const Said said = prepare.wait(60);
    EXPECT_EQ(said.code, 128 + signal) << said.out;
    EXPECT_TRUE(said.contains("interrupted by signal")) << said.out;
    EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"text"});
  }
}

// Two small corpora, mixed.
class Mixed : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [name, lines] : {std::pair{"a", 3000}, std::pair{"b", 400}}) {
      std::string text;
      for (int i = 0; i < lines; ++i) text += std::string(name) + " line " + std::to_string(i * 7919 % 10007) + "\n";
      write_file(folder_ / (std::string(name) + ".txt"), text);
      const Said said = run("$NSP prepare --input " + folder_ / (std::string(name) + ".txt") + " --output " + folder_ / name);
      ASSERT_EQ(said.code, 0) << said.out;
    }
  }
  std::string train(const std::string& mix, const std::string& dir, int steps) const {
    return "env OMP_NUM_THREADS=1 NSP_TRAIN_THREADS=1 mpirun -np 2 $NSP --data.path '" + mix + "' --run.dir " + (folder_ / dir) +
           " --model.layers 1 --model.hidden 32 --model.heads 2 --model.ffn 64 --model.vocab 257 --model.context 32 --train.global_batch "
           "6" +
           " --train.schedule constant --train.warmup 0 --train.eval_every 5 --train.steps " + std::to_string(steps);
  }
  std::string mix() const { return (folder_ / "a") + ":2, " + (folder_ / "b") + ":1"; }
  const TempFolder folder_;
};

TEST_F(Mixed, ARunThatIsResumedSeesTheSameSamples) {
  const Said whole = run(train(mix(), "whole", 20));
  ASSERT_EQ(whole.code, 0) << whole.out;
  EXPECT_TRUE(whole.contains("% of the training")) << whole.out;
  EXPECT_EQ(whole.count("66.7% of the training"), 1) << whole.out;
  EXPECT_EQ(whole.count("33.3% of the training"), 1) << whole.out;
  ASSERT_EQ(run(train(mix(), "parts", 7)).code, 0);
  const Said parts = run(train(mix(), "parts", 20));
  ASSERT_EQ(parts.code, 0) << parts.out;
  EXPECT_EQ(losses(folder_ / "parts", 20), losses(folder_ / "whole", 20));
  const Said other = run(train((folder_ / "a") + ":1," + (folder_ / "b") + ":1", "parts", 30));
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_TRUE(other.contains("data.path is other data than this run was trained on")) << other.out;
  const Said evaluated = run("$NSP eval --run.dir " + (folder_ / "whole"));
  EXPECT_EQ(evaluated.code, 0) << evaluated.out;
}

TEST_F(Mixed, BadListsSayWhatIsWrong) {
  const std::string tokens =
      std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_val.bin";
  Said said = run(train((folder_ / "a") + ":1," + tokens + ":1", "run", 1));
  EXPECT_EQ(said.code, 4) << said.out;
  EXPECT_TRUE(said.contains("do not belong together")) << said.out;
  said = run(train((folder_ / "a") + ":1," + (folder_ / "b"), "run", 1));
  EXPECT_EQ(said.code, 4) << said.out;
  EXPECT_TRUE(said.contains("Give every corpus a weight")) << said.out;
}

}  // namespace
}  // namespace nsp::test
