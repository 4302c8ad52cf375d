// nsp_app plan of machines that are not here: its text, its answer, and its size for thousands of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

// UPDATE_GOLDEN=1 writes the file anew; look at the difference before it is committed.
void expect_golden(const std::string& command, const std::string& name, int code) {
  const Said said = run(command);
  EXPECT_EQ(said.code, code) << said.out;
  const std::string path = std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << said.out;
  EXPECT_EQ(said.out, read_file(path)) << "differs from " << path;
}

const std::string seven_billion = " --model.preset llama_7b ";

TEST(Plan, GoldenMixedCluster) {
  expect_golden(
      "$NSP plan --model.preset gpt2_124m --plugins desloc,autosp --autosp.degree 3 --devices h100:12,a6000:3 --per-host 4 "
      "--train.global_batch 48 --host-memory 256G",
      "plan_mixed.txt", 0);
}

TEST(Plan, GoldenThatDoesNotFit) {
  expect_golden("$NSP plan" + seven_billion + "--devices h100:8 --train.global_batch 64", "plan_does_not_fit.txt", 3);
}

TEST(Plan, FourThousandRanksAreQuickAndShort) {
  const auto begin = std::chrono::steady_clock::now();
  const Said said =
      run("$NSP plan" + seven_billion + "--plugins desloc,autosp --devices h200:2048,h100:2048 --ranks 4096 --train.global_batch 4096");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_LT(seconds, 20);  // 0.2 s where nothing else runs
  EXPECT_LT(std::count(said.out.begin(), said.out.end(), '\n'), 90) << said.out;
  EXPECT_TRUE(said.contains("h100-1 to h100-256 (256 hosts), each: 8 x")) << said.out;
}

TEST(Plan, AdviceIsTrue) {
  const std::string command =
      "$NSP plan --model.preset gpt2_124m --devices t4:4 --memory 5G --train.global_batch 64 --train.micro_batch 16";
  const Said said = run(command);
  EXPECT_EQ(said.code, 3) << said.out;
  const std::size_t at = said.out.find("--train.micro_batch ");
  ASSERT_NE(at, std::string::npos) << said.out;
  const int fits = std::atoi(said.out.c_str() + at + 20);
  const auto with = [](int micro_batch) {
    return run("$NSP plan --model.preset gpt2_124m --devices t4:4 --memory 5G --train.global_batch 64 --train.micro_batch " +
               std::to_string(micro_batch))
        .code;
  };
  EXPECT_EQ(with(fits), 0);
  EXPECT_EQ(with(fits + 1), 3);
}

TEST(Plan, MoreRanksOfAHostThanFit) {
  const Said said = run("$NSP plan --devices cpu:8 --per-host 8 --host-memory 300M");
  EXPECT_EQ(said.code, 3) << said.out;
  EXPECT_TRUE(said.contains("of such ranks fit on a host")) << said.out;
  EXPECT_EQ(run("$NSP plan --devices cpu:8 --per-host 8 --host-memory 8G").code, 0);
  EXPECT_EQ(run("$NSP plan --ranks 8 --memory 1M").code, 3);
}

TEST(Plan, Refusals) {
  expect_refusal(run("$NSP plan --devices h10:2"), 2, {"'h10'", "Known are h100, h200"}, "Did you mean h100?");
  expect_refusal(run("$NSP plan --devices h100"), 2, {"'h100' cannot be read", "no count"}, "h100:32,a6000:32");
  expect_refusal(run("$NSP plan --devices h100:8,a6000:4 --ranks 16"), 2, {"are 12 devices", "--ranks is 16"}, "make the two agree");
  expect_refusal(run("$NSP plan --devices h100:8 --per-host 0"), 2, {"per-host = 0", "too small"}, "at least 1");
}

}  // namespace
}  // namespace nsp::test
