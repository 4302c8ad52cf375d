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

}  // namespace
}  // namespace nsp::test
