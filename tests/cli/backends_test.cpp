// CPU modules for several instruction sets side by side: which one is taken, which are refused and why, and a job of two.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/cli/command.hpp"
#include "tests/support/module_file.hpp"

namespace nsp::test {
namespace {

// In one folder with the others, where configured (NSP_CPU_ARCHS).
bool built(const std::string& backend) {
  const char* path = std::getenv("NSP_PLUGIN_PATH");
  return std::filesystem::exists(std::string(path != nullptr ? path : "") + "/libnsp_backend_" + backend + ".so");
}

bool usable(const std::string& backend) {
  return built(backend) && module_runs_here(backend);
}

// The lines of `nsp_app plugins` on one plug-in.
std::string about(const std::string& listing, const std::string& plugin) {
  std::istringstream lines(listing);
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("      ", 0) != 0) inside = line.rfind("  " + plugin + " ", 0) == 0;
    if (inside) text += line + "\n";
  }
  return text;
}

TEST(Backends, AnUnfitModuleIsRefusedByWhatIsMissing) {
  if (!built("cpu_x86_64_v4")) GTEST_SKIP() << "no module for x86-64-v4 in this build";
  const Said listing = run("$NSP plugins");
  ASSERT_EQ(listing.code, 0) << listing.out;
  const std::string lines = about(listing.out, "cpu_x86_64_v4");
  const Said forced = run("$NSP info --backend cpu_x86_64_v4");
  if (module_runs_here("cpu_x86_64_v4")) {
    EXPECT_NE(lines.find("loaded"), std::string::npos) << lines;
    EXPECT_EQ(forced.code, 0) << forced.out;
    EXPECT_TRUE(forced.contains("backend cpu_x86_64_v4")) << forced.out;
    return;
  }
  EXPECT_NE(lines.find("refused: It needs what this processor lacks: AVX-512 (x86-64-v4)"), std::string::npos) << listing.out;
  EXPECT_EQ(forced.code, 2) << forced.out;
  EXPECT_TRUE(forced.contains("The plug-in cpu_x86_64_v4 (") && forced.contains("lacks: AVX-512 (x86-64-v4)")) << forced.out;
}

TEST(Backends, TheHighestScoreIsTakenAndAnyOtherCanBeForced) {
  if (!usable("cpu_x86_64_v3") || !usable("cpu_native")) GTEST_SKIP() << "needs modules for native and x86-64-v3 that run here";
  const Said chosen = run("$NSP info"), forced = run("$NSP info --backend cpu_x86_64_v3"),
             asked = run("env NSP_BACKEND=cpu_x86_64_v3 $NSP info");
  EXPECT_EQ(chosen.code, 0) << chosen.out;
  EXPECT_TRUE(chosen.contains("backend cpu_native,")) << chosen.out;
  EXPECT_EQ(forced.code, 0) << forced.out;
  EXPECT_TRUE(forced.contains("backend cpu_x86_64_v3,")) << forced.out;
  EXPECT_TRUE(asked.contains("backend cpu_x86_64_v3,")) << asked.out;
}

// Gradients differ in their last digits between the two; sums and updates do not, so every rank holds the same weights.
TEST(Backends, RanksOnDifferentModulesStayEqual) {
  if (!usable("cpu_x86_64_v3") || !usable("cpu_native")) GTEST_SKIP() << "needs modules for native and x86-64-v3 that run here";
  const TempFolder folder;
  const std::string rank = "$NSP --run.verify_every 1" + tiny_run(folder / "run", 4);
  const Said said = run("mpirun -np 1 env NSP_BACKEND=cpu_native " + rank + " : -np 1 env NSP_BACKEND=cpu_x86_64_v3 " + rank, 300);
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("(backend cpu_native,") && said.contains("(backend cpu_x86_64_v3,")) << said.out;
  const std::string metrics = read_file(folder / "run/metrics.jsonl");
  EXPECT_NE(metrics.find("\"step\":4,\"loss\""), std::string::npos) << metrics;
}

}  // namespace
}  // namespace nsp::test
