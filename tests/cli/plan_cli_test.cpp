// nsp_app plan of machines that are not here: its text, its answer, and its size for thousands of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

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
  const Said said =
      run("$NSP plan" + seven_billion + "--plugins desloc,autosp --devices h200:2048,h100:2048 --ranks 4096 --train.global_batch 4096");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_LT(said.cpu_seconds, 1);  // whatever else runs here
  EXPECT_LT(std::count(said.out.begin(), said.out.end(), '\n'), 90) << said.out;
  EXPECT_TRUE(said.contains("h100-1 to h100-256 (256 hosts), each: 8 x")) << said.out;
}

// The proposals after "What fits: " that are options.
std::vector<std::string> proposals(const Said& said) {
  const std::string mark = "What fits: ";
  const std::size_t begin = said.out.find(mark);
  std::vector<std::string> all;
  if (begin == std::string::npos) return all;
  std::istringstream text(said.out.substr(begin + mark.size(), said.out.find(".\n", begin) - begin - mark.size()));
  for (std::string one; std::getline(text, one, ';');) {
    one.erase(0, one.find_first_not_of(' '));
    if (one.rfind("--", 0) == 0) all.push_back(one);
  }
  return all;
}

// The options with those of a proposal in their place.
std::string with_proposal(std::string options, const std::string& proposal) {
  std::istringstream words(proposal);
  for (std::string key, value; words >> key >> value;)
    if (const std::size_t at = options.find(key + " "); at != std::string::npos)
      options.erase(at, options.find(' ', at + key.size() + 1) - at);
  return options + " " + proposal;
}

TEST(Plan, AdviceIsTrue) {
  using Proposals = std::vector<std::string>;
  const std::string llama = "--devices h100:32,a6000:32 --config $NSP_TEST_SOURCE_DIR/examples/llama_7b.ini";
  const std::string gpt2 = "--model.preset gpt2_124m --devices t4:4 --memory 5G --train.global_batch 64 --train.micro_batch 16";
  const std::vector<std::pair<std::string, Proposals>> cases = {
      {llama, {"--plugins autosp --autosp.degree 16 --train.dtype bf16"}},
      {llama + " --plugins autosp --autosp.degree 2", {"--autosp.degree 16 --train.dtype bf16"}},
      {llama + " --plugins autosp --train.micro_batch 64 --train.dtype bf16", {"--train.micro_batch 23"}},
      {seven_billion + "--devices h100:8 --train.global_batch 64", {"--plugins autosp --autosp.degree 8"}},
      {seven_billion + "--devices h100:8 --plugins desloc,sgd --train.global_batch 64", {"--plugins desloc,autosp,sgd --autosp.degree 8"}},
      {seven_billion + "--devices h100:2", {}},
      {gpt2, {"--train.micro_batch 7", "--train.dtype bf16 --train.micro_batch 13", "--plugins autosp --autosp.degree 4"}},
      {"--devices cpu:8 --per-host 8 --host-memory 300M --train.threads 1", {"--plugins autosp --autosp.degree 4 --train.dtype bf16"}}};
  for (const auto& [options, wanted] : cases) {
    SCOPED_TRACE(options);
    const Said said = run("$NSP plan " + options);
    EXPECT_EQ(said.code, 3) << said.out;
    const Proposals all = proposals(said);
    EXPECT_EQ(all, wanted) << said.out;
    for (const std::string& proposal : all) {
      const Said with = run("$NSP plan " + with_proposal(options, proposal));
      EXPECT_EQ(with.code, 0) << proposal << "\n" << with.out;
      const std::size_t at = proposal.find("--train.micro_batch ");
      if (at == std::string::npos) continue;
      const std::string more = proposal.substr(0, at + 20) + std::to_string(std::atoi(proposal.c_str() + at + 20) + 1);
      EXPECT_EQ(run("$NSP plan " + with_proposal(options, more)).code, 3) << more;
    }
  }
}

TEST(Plan, AnAutomaticMicroBatchGivesWayToMemory) {
  const std::string options = "$NSP plan --model.preset gpt2_124m --devices t4:4 --train.context 512 --train.global_batch 64 --memory ";
  EXPECT_TRUE(run(options + "3G").contains("at most 4 at once\n"));
  const Said small = run(options + "2500M");
  EXPECT_EQ(small.code, 0) << small.out;
  EXPECT_TRUE(small.contains("at most 2 at once (the usual 4 do not fit)\n")) << small.out;
  EXPECT_EQ(run(options + "2500M --train.micro_batch 3").code, 3);
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
  for (const char* what :
       {"h100:2 --backend foo", "h100:2 --backend cpu_native", "h100:2,cpu:2 --backend cpu", "h100:1 --backend cuda_sm80"})
    expect_refusal(run("$NSP plan --devices " + std::string(what)), 2, {"does not fit --devices h100", "needs cuda_sm90"},
                   "Give --backend auto");
  expect_refusal(run("$NSP plan --devices cpu:2 --backend cuda"), 2, {"backend = cuda does not fit --devices cpu"}, "Give --backend auto");
  EXPECT_EQ(run("$NSP plan --devices h100:1,h200:1 --backend cuda").code, 0);
  expect_refusal(run("$NSP plan --devices h100:8 --per-host 0"), 2, {"per-host = 0", "too small"}, "at least 1");
}

}  // namespace
}  // namespace nsp::test
