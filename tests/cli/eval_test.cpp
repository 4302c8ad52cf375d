// nsp_app eval and generate on a trained run: ranks, limits, formats, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

struct Line {
  double loss = 0, perplexity = 0, bits = 0;
  long long tokens = 0;
};

Line json_line(const Said& said) {
  Line line;
  const auto number = [&](const char* key) {
    const std::size_t at = said.out.find("\"" + std::string(key) + "\":");
    EXPECT_NE(at, std::string::npos) << key << " in\n" << said.out;
    return at == std::string::npos ? std::nan("") : std::strtod(said.out.c_str() + at + std::string(key).size() + 3, nullptr);
  };
  line.loss = number("loss");
  line.perplexity = number("perplexity");
  line.bits = number("bits_per_byte");
  line.tokens = static_cast<long long>(number("tokens"));
  return line;
}

std::string ranks(int n) {
  return "env OMP_NUM_THREADS=1 mpirun -np " + std::to_string(n) + " $NSP ";
}

// One run of 4 steps, trained once.
class Eval : public testing::Test {
 protected:
  void SetUp() override { run_dir_ = copy_of_run(folder_); }
  TempFolder folder_;
  std::string run_dir_;
};

TEST_F(Eval, TheNumberOfRanksDoesNotMatter) {
  const std::string eval = "eval --json --run.dir " + run_dir_;
  const Line one = json_line(run("$NSP " + eval));
  EXPECT_GT(one.tokens, 0);
  EXPECT_NEAR(one.perplexity, std::exp(one.loss), 1e-9 * one.perplexity);
  EXPECT_NEAR(one.bits, one.loss / std::log(2.0), 0.05 * one.bits);
  for (const int n : {2, 3}) {
    const Said said = run(ranks(n) + eval);
    ASSERT_EQ(said.code, 0) << said.out;
    EXPECT_EQ(said.count("\"kind\":\"eval\""), 1) << said.out;
    const Line several = json_line(said);
    EXPECT_NEAR(several.loss, one.loss, 1e-6 * one.loss);
    EXPECT_EQ(several.tokens, one.tokens);
  }
}

TEST_F(Eval, BatchesLimitWhatIsReadAndACheckpointCanBeNamed) {
  const Line all = json_line(run("$NSP eval --json --run.dir " + run_dir_));
  const Line some =
      json_line(run("$NSP eval --json --batches 1 --run.resume " + run_dir_ + "/checkpoints/step_00000002 --run.dir " + run_dir_));
  EXPECT_LT(some.tokens, all.tokens);
  EXPECT_NE(some.loss, all.loss);
  const Said text = run("$NSP eval --run.dir " + run_dir_);
  EXPECT_TRUE(text.contains("step 4: loss ") && text.contains(" bits per byte, on ")) << text.out;
}

// The configuration of runs may name plug-ins for training; nothing is trained here.
TEST_F(Eval, PlugInsOfTheRunDoNotMatter) {
  const Line one = json_line(run("$NSP eval --json --run.dir " + run_dir_));
  const std::string words = "eval --plugins desloc,autosp --json --run.resume " + run_dir_;
  const Said said = run("env NSP_DESLOC_KX=4 NSP_MODEL_LAYERS=9 " + ranks(2) + words);
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_NEAR(json_line(said).loss, one.loss, 1e-6 * one.loss);
}

TEST_F(Eval, Refusals) {
  expect_refusal(run("$NSP eval --run.dir " + (folder_ / "none")), 4, {"no usable checkpoint", "none"}, "--run.dir");
  expect_refusal(run(ranks(2) + "eval --run.dir " + (folder_ / "none")), 4, {"no usable checkpoint", "none"}, "--run.dir");
  expect_refusal(run("$NSP eval --run.dir " + run_dir_ + " --data.path " + (folder_ / "nodata")), 4, {"nodata"}, "Check the path");
  expect_refusal(run("$NSP eval --run.dir " + run_dir_ + " --train.context 100000"), 2, {"longer than the model's context"}, "Lower");
  expect_refusal(run(ranks(2) + "eval --model.layers 3 --run.dir " + run_dir_), 2,
                 {"--model.layers has no effect on the verb eval", "The model is the checkpoint's"}, "Leave it out");
  expect_refusal(run("$NSP eval --json=3 --run.dir " + run_dir_), 2, {"json"}, "");
}

TEST_F(Eval, GenerateTakesAPromptFromStandardInput) {
  const std::string rest = " --tokens 20 --top-k 1 --run.dir " + run_dir_;
  const Said given = run("$NSP generate --prompt 'ab cd'" + rest), piped = run("printf 'ab cd' | $NSP generate --prompt -" + rest);
  EXPECT_EQ(given.code, 0) << given.out;
  EXPECT_EQ(given.out.rfind("ab cd", 0), 0u) << given.out;
  EXPECT_EQ(piped.out, given.out);
  expect_refusal(run("$NSP generate --run.dir " + (folder_ / "none")), 4, {"no usable checkpoint"}, "--run.dir");
}

}  // namespace
}  // namespace nsp::test
