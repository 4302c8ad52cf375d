// Training runs from the command line alone: results against reference data, bytes, what verbs say.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "io/llmc_file.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

constexpr double tiny_parameters = 136192;  // of tests/golden/llmc_tiny at its true vocabulary of 500

std::string golden(const std::string& name) {
  return std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/golden/llmc_tiny/" + name;
}

// The numbers that follow a text in the reference output, in order.
std::vector<double> expected(const std::string& text) {
  std::istringstream in(read_file(golden("expected_torch_fp64.txt")));
  std::vector<double> out;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find(text); at != std::string::npos)
      out.push_back(std::strtod(line.c_str() + at + text.size(), nullptr));
  return out;
}

// A nano model on text of this repository, prepared once for all tests.
class PreparedText : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    const Said said =
        run("$NSP prepare --input '" + std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/core/include/nsp/*' --output " + data());
    ASSERT_EQ(said.code, 0) << said.out;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string data() { return *folder_ / "data"; }

  static TempFolder* folder_;
};
TempFolder* PreparedText::folder_ = nullptr;

TEST(Golden, LossesAndParametersAfter41Steps) {
  const TempFolder folder;
  const Said said = run("$NSP" + tiny_run(folder / "run", 41) +
                        "--adamw.beta2 0.999 --adamw.weight_decay 0 --train.clip 0 --train.eval_every 10 --run.verify_every 1");
  ASSERT_EQ(said.code, 0) << said.out;
  const std::vector<double> reference = expected("train loss ");
  const std::vector<std::string> found = losses(folder / "run", 41);
  ASSERT_EQ(reference.size(), 41u);
  ASSERT_EQ(found.size(), 41u);
  for (std::size_t t = 0; t < 41; ++t) EXPECT_NEAR(std::strtod(found[t].c_str(), nullptr), reference[t], 1e-4) << "step " << t + 1;

  const std::vector<double> held_out = expected("val loss ");  // before the first step and after 10, 20, 30, 40
  const std::vector<std::string> evaluations = records(folder / "run", "eval");
  ASSERT_EQ(held_out.size(), 5u);
  ASSERT_EQ(evaluations.size(), 6u);  // and after 41
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(number(evaluations[i], "val_loss"), held_out[i], 1e-4);

  // The reference parameters lack the header that the model file has.
  write_file(folder / "after.bin", read_file(golden("gpt2_124M.bin")).substr(0, 1024) + read_file(golden("params_after.bin")));
  const LlmcModel model = read_llmc_model(folder / "after.bin");
  const Tensors tensors = read_checkpoint(folder / "run", 41);
  std::size_t compared = 0;
  for (const auto& [name, tensor] : model.tensors) {
    ASSERT_EQ(tensors.count("/model/" + name), 1u) << name;
    const std::vector<float>& values = tensors.at("/model/" + name);
    ASSERT_EQ(values.size(), tensor.values.size()) << name;
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(values[i]) - tensor.values[i]));
    EXPECT_LT(worst, 1e-4) << name;
    compared += values.size();
  }
  EXPECT_EQ(static_cast<double>(compared), tiny_parameters);
}

struct Degree {
  const char* given;
  const char* printed;
};
class EightRanks : public PreparedText, public testing::WithParamInterface<Degree> {};

TEST_P(EightRanks, TrainFromAnyFolder) {
  const TempFolder elsewhere;
  const Said said = run("env -C " + elsewhere.path() + " " + ranks(8) + " --plugins desloc,autosp --autosp.degree " + GetParam().given +
                        " --desloc.kx 1 --desloc.ku 2 --desloc.kv 2 --data.path " + data() +
                        " --train.steps 4 --train.global_batch 8 --train.lr 3e-3 --train.warmup 0 --train.eval_batches 1");
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains(GetParam().printed)) << said.out;
  EXPECT_EQ(said.count("ranks: 8 = "), 1) << said.out;
  EXPECT_FALSE(said.contains("[#")) << "a progress bar in a file:\n" << said.out;
  const std::string run_dir = elsewhere / "nsp-run";
  const std::vector<std::string> found = losses(run_dir, 4);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_NEAR(std::strtod(found[0].c_str(), nullptr), std::log(257.0), 0.3);  // random weights know nothing about 257 tokens
  EXPECT_LT(std::strtod(found[3].c_str(), nullptr), std::strtod(found[0].c_str(), nullptr));
  EXPECT_EQ(records(run_dir, "checkpoint").size(), 1u);
  for (const char* file : {"config.ini", "plan.txt"}) EXPECT_TRUE(std::filesystem::exists(run_dir + "/" + file)) << file;
}

INSTANTIATE_TEST_SUITE_P(Run, EightRanks,
                         testing::Values(Degree{"auto", "degree 1 by auto: 8 replicas of 1 rank"},
                                         Degree{"2", "degree 2 as given: 4 replicas of 2 ranks"},
                                         Degree{"4", "degree 4 as given: 2 replicas of 4 ranks"}),
                         [](const auto& info) { return std::string("Degree") + info.param.given; });

struct Layout {
  int replicas, degree;
};
class SyncBytes : public testing::TestWithParam<Layout> {
 protected:
  static std::string layout(const std::string& sync) {
    return ranks(GetParam().replicas * GetParam().degree) + " --plugins " + sync + ",autosp --autosp.degree " +
           std::to_string(GetParam().degree);
  }
  static double all_reduce() { return 2.0 * (GetParam().replicas - 1) * 4.0 * tiny_parameters; }  // bytes over all ranks
};

TEST_P(SyncBytes, DeslocAddsUpOverAPeriod) {
  constexpr int kx = 2, ku = 4, kv = 8;
  const TempFolder folder;
  const Said said = run(layout("desloc") + " --desloc.kx 2 --desloc.ku 4 --desloc.kv 8" + tiny_run(folder / "run", kv + 1));
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(sum_of(folder / "run", "sync_bytes", 2, kv + 1), all_reduce() * (kv / kx + kv / ku + 1));
  const std::vector<std::string> steps = records(folder / "run", "step");
  EXPECT_EQ(number(steps[0], "sync_bytes"), 0);
  EXPECT_EQ(number(steps[1], "sync_bytes"), 0);
  EXPECT_EQ(number(steps[2], "sync_bytes"), all_reduce());         // step 3 has t = 2: parameters
  EXPECT_EQ(number(steps[kv], "sync_bytes"), 3.0 * all_reduce());  // and t = Kv: all three
  EXPECT_EQ(number(steps[0], "replica_bytes") > 0, GetParam().degree > 1);
}

TEST_P(SyncBytes, DdpSendsTheSameInEveryStep) {
  const TempFolder folder;
  const Said said = run(layout("ddp") + tiny_run(folder / "run", 4));
  ASSERT_EQ(said.code, 0) << said.out;
  for (const std::string& step : records(folder / "run", "step")) EXPECT_EQ(number(step, "sync_bytes"), all_reduce()) << step;
  losses(folder / "run", 4);
}

INSTANTIATE_TEST_SUITE_P(Run, SyncBytes, testing::Values(Layout{2, 1}, Layout{4, 1}, Layout{2, 2}, Layout{4, 2}), [](const auto& info) {
  return "Replicas" + std::to_string(info.param.replicas) + "Degree" + std::to_string(info.param.degree);
});

TEST(Plan, SaysHowMuchLessDeslocSends) {
  const Said said = run("$NSP plan --plugins desloc --ranks 4 --desloc.kx 256 --desloc.ku 768 --desloc.kv 1536");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("170.67 times less")) << said.out;
  EXPECT_TRUE(said.contains("4 = 4 replicas x 1 rank")) << said.out;
}

TEST(Plan, EndsWith3WhereMemoryIsShort) {
  const Said said = run("$NSP plan --memory 10M");
  EXPECT_EQ(said.code, 3) << said.out;
  EXPECT_TRUE(said.contains("memory of one rank")) << said.out;
  EXPECT_TRUE(said.contains("nsp_app: error: ")) << said.out;
}

TEST(CompleteRun, SaysSoAndEnds0) {
  const TempFolder folder;
  for (const char* launcher : {"$NSP", "env OMP_NUM_THREADS=1 mpirun -np 2 $NSP"}) {
    const std::string run_dir = folder / (launcher[0] == '$' ? "one" : "two");
    ASSERT_EQ(run(launcher + tiny_run(run_dir, 2)).code, 0);
    const std::string before = read_file(run_dir + "/metrics.jsonl");
    const Said again = run(launcher + tiny_run(run_dir, 2));
    EXPECT_EQ(again.code, 0) << again.out;
    EXPECT_EQ(again.count("is complete: 2 of 2 steps"), 1) << again.out;
    EXPECT_EQ(again.count("loss"), 0) << again.out;
    EXPECT_EQ(read_file(run_dir + "/metrics.jsonl"), before);
  }
}

// The plan verb's text for this machine, and what a run knows beside it: measured peaks, and the memory that is free at that moment.
TEST(PlanFile, IsTheTextOfTheVerbButForWhatIsMeasured) {
  const TempFolder folder;
  const std::string options = " --plugins desloc --desloc.kx 2 --desloc.ku 4 --desloc.kv 8" + tiny_run(folder / "run", 2);
  ASSERT_EQ(run(ranks(2) + options).code, 0);
  const Said said = run("env NSP_TRAIN_THREADS=1 $NSP plan --ranks 2 --config " + (folder / "run/config.ini"));
  ASSERT_EQ(said.code, 0) << said.out;
  const auto lines = [](const std::string& text, bool of_run) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      const bool topology = line.find(" free), ranks 0-1") != line.npos, room = line.rfind("  host:   ", 0) == 0;
      if (topology || room) line = std::regex_replace(line, std::regex("[0-9.]+ [GT]iB( of [0-9.]+ [GT]iB free|  <- scarcest)"), "ROOM$1");
      if (of_run && topology) line = std::regex_replace(line, std::regex(", [0-9]+( to [0-9]+)? [GT]FLOP/s"), "");
      if (of_run && line.rfind("compute: ", 0) == 0) line.erase(std::min(line.find("; at the measured peaks at least "), line.size()));
      all.push_back(line);
    }
    return all;
  };
  const std::string file = read_file(folder / "run/plan.txt");
  EXPECT_NE(file.find("FLOP/s, "), std::string::npos) << file;
  EXPECT_NE(file.find("; at the measured peaks at least "), std::string::npos) << file;
  EXPECT_EQ(lines(said.out, false), lines(file, true));
  const std::string compared = file.substr(file.find("[plan]\n"));
  EXPECT_NE(compared.find("\nplugins = desloc,dp,resident,adamw\n"), std::string::npos) << compared;
  EXPECT_EQ(compared.find("memory_budget"), std::string::npos) << compared;
}

using Prepared = PreparedText;

TEST_F(Prepared, TextIsTrainedEvaluatedAndContinued) {
  const TempFolder folder;
  const std::string run_dir = folder / "run";
  const std::string config = folder / "small.ini";
  write_file(config, "[model]\nlayers = 2\nhidden = 32\nheads = 2\ncontext = 64\n[data]\npath = " + data() +
                         "\n[train]\nsteps = 30\nglobal_batch = 8\nlr = 1e-2\nwarmup = 5\neval_batches = 1000\nthreads = 1\n[run]\ndir = " +
                         run_dir + "\n");
  Said said = run("$NSP --config " + config + " --train.steps 40");  // the command line is stronger than the file
  ASSERT_EQ(said.code, 0) << said.out;
  const std::vector<std::string> found = losses(run_dir, 40);
  EXPECT_LT(std::strtod(found.back().c_str(), nullptr), 4.5) << said.out;
  const std::string resolved = read_file(run_dir + "/config.ini");
  for (const char* line : {"steps = 40", "hidden = 32", "command line", "small.ini", "default"})
    EXPECT_NE(resolved.find(line), std::string::npos) << line << "\n" << resolved;

  // The same data through another program path gives the number of the run's own last evaluation.
  const double last = number(records(run_dir, "eval").back(), "val_loss");
  said = run("$NSP eval --run.dir " + run_dir);
  ASSERT_EQ(said.code, 0) << said.out;
  double loss = 0, perplexity = 0, bits = 0;
  ASSERT_EQ(std::sscanf(said.out.c_str(), "step 40: loss %lf nats per token, perplexity %lf, %lf bits per byte", &loss, &perplexity, &bits),
            3)
      << said.out;
  EXPECT_NEAR(loss, last, 1e-5);
  EXPECT_NEAR(perplexity, std::exp(loss), 1e-3 * perplexity);
  EXPECT_NEAR(bits, loss / std::log(2.0), 0.02 * bits);  // a byte is a token, document ends apart

  const std::string generate = "$NSP generate --run.dir " + run_dir + " --prompt 'int main' --tokens 30 --top-k 1 --seed 7";
  said = run(generate);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.out.rfind("int main", 0), 0u) << said.out;
  EXPECT_GT(said.out.size(), 10u) << said.out;
  EXPECT_EQ(run(generate).out, said.out);

  said = run("$NSP checkpoint ls " + run_dir);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("        40") && said.contains("complete")) << said.out;
  said = run("$NSP checkpoint verify " + run_dir);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("step 40: good")) << said.out;
}

TEST_F(Prepared, AnotherModelInTheSameRunDirectoryIsRefused) {
  const TempFolder folder;
  const std::string start = "$NSP --data.path " + data() + " --run.dir " + (folder / "run") +
                            " --train.steps 2 --train.global_batch 4 --train.eval_batches 1 --model.layers ";
  ASSERT_EQ(run(start + "1").code, 0);
  const Said said = run(start + "2");
  EXPECT_EQ(said.code, 2) << said.out;
  EXPECT_TRUE(said.contains("model.layers: 1 -> 2")) << said.out;
}

TEST(Verbs, HelpIsThereAtEveryLevel) {
  Said said = run("$NSP --help");
  EXPECT_EQ(said.code, 0);
  for (const char* verb : {"train", "plan", "prepare", "eval", "generate", "checkpoint", "bench", "plugins", "info"}) {
    EXPECT_TRUE(said.contains(std::string("\n  ") + verb)) << verb << "\n" << said.out;
    for (const char* flag : {" --help", " -h"}) {
      const Said own = run("$NSP " + std::string(verb) + flag);
      EXPECT_EQ(own.code, 0) << own.out;
      EXPECT_EQ(own.out.rfind("usage: nsp_app " + std::string(verb), 0), 0u) << own.out;
    }
  }
  said = run("$NSP checkpoint verify --help");
  EXPECT_EQ(said.code, 0) << said.out;
  said = run("$NSP train --plugins desloc --help");
  EXPECT_EQ(said.code, 0) << said.out;
  for (const char* key : {"--train.lr", "--model.layers", "--desloc.kx", "--adamw.beta2"})
    EXPECT_TRUE(said.contains(key)) << key << "\n" << said.out;
  said = run("$NSP prepare --help");
  EXPECT_TRUE(said.contains("--val-fraction")) << said.out;
  EXPECT_FALSE(said.contains("--train.lr")) << said.out;
}

TEST(Verbs, VersionPluginsAndInfo) {
  Said said = run("$NSP --version");
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out.rfind("nsp ", 0), 0u) << said.out;
  said = run("$NSP plugins");
  EXPECT_EQ(said.code, 0);
  for (const char* name :
       {"sync:", "ddp", "desloc", "parallel:", "autosp", "resident", "adamw", "comm:", "mpi", "backend:", "loaded", "built in"})
    EXPECT_TRUE(said.contains(name)) << name << "\n" << said.out;
  said = run("$NSP info");
  EXPECT_EQ(said.code, 0);
  for (const char* name : {"processor", "memory", "device", "backend", "GFLOP/s"})
    EXPECT_TRUE(said.contains(name)) << name << "\n" << said.out;
}

}  // namespace
}  // namespace nsp::test
