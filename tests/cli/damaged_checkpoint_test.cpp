// A checkpoint with a torn, damaged or swapped file is found out by its checksums, reported, and the one before is used: by a
// run that goes on, by generate and by eval.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/hdf5_store.hpp"
#include "tests/cli/bad_input_case.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

// A run of two ranks with checkpoints at 2 and 4.
std::string two_ranks_run(const TempFolder& folder) {
  static const TempFolder base;
  static const std::string trained = [] {
    const std::string dir = base / "run";
    const Said said = run("mpirun -np 2 $NSP" + tiny({{"data.path", prepared_data()}, {"run.dir", dir}}));
    EXPECT_EQ(said.code, 0) << said.out;
    return dir;
  }();
  fs::copy(trained, folder / "run", fs::copy_options::recursive);
  return folder / "run";
}

std::string shard(const std::string& run_dir, int step, int rank) {
  const std::string number = "0000000" + std::to_string(step);
  return run_dir + "/checkpoints/step_" + number + "/run_" + number + "_rank_000" + std::to_string(rank) + ".h5";
}

void replace(const std::string& file, const std::string& by) {
  fs::copy_file(by, file, fs::copy_options::overwrite_existing);
}

// Changes a bit of a tensor, in the shard where its first elements lie.
void flip_in_tensor(const std::string& run_dir, int step, const std::string& name) {
  std::string elements(64, '\0');
  Hdf5Store(run_dir + "/checkpoints").open(step)->get(name, DType::f32, 0, 16, elements.data());
  for (int rank : {0, 1})
    if (const std::size_t at = read_file(shard(run_dir, step, rank)).find(elements); at != std::string::npos)
      return flip(shard(run_dir, step, rank), at + 5);
  FAIL() << name << " is in no shard";
}

struct Damage {
  const char* name;
  void (*make)(const std::string& run_dir);  // to the checkpoint of step 4
  const char* cause;
};

const Damage damages[] = {
    {"FlippedBit", [](const std::string& dir) { flip_in_tensor(dir, 4, "/model/blocks.0.mlp.fc.weight"); }, "Its checksum differs"},
    {"ShardOfAnotherStep", [](const std::string& dir) { replace(shard(dir, 4, 1), shard(dir, 2, 1)); },
     "rank_0001.h5 is not what was written. Its checksum differs"},
    {"ShardOfAnotherRank", [](const std::string& dir) { replace(shard(dir, 4, 1), shard(dir, 4, 0)); }, "rank_0001.h5 cannot be read"},
    {"ShardsSwapped",
     [](const std::string& dir) {
       fs::rename(shard(dir, 4, 0), dir + "/aside");
       fs::rename(shard(dir, 4, 1), shard(dir, 4, 0));
       fs::rename(dir + "/aside", shard(dir, 4, 1));
     },
     "rank_0000.h5 cannot be read"},
    {"TruncatedShard", [](const std::string& dir) { cut(shard(dir, 4, 0), 3000); }, "truncated"},
    {"MissingShard", [](const std::string& dir) { fs::remove(shard(dir, 4, 0)); }, "The shard is missing"},
    {"TruncatedManifest", [](const std::string& dir) { cut(manifest_of(dir, 4), 1000); }, "manifest.h5 is torn or damaged"},
    {"FlippedBitInManifest", [](const std::string& dir) { flip(manifest_of(dir, 4), fs::file_size(manifest_of(dir, 4)) / 2); },
     "manifest.h5 is torn or damaged"},
    {"ManifestOfAnotherStep", [](const std::string& dir) { replace(manifest_of(dir, 4), manifest_of(dir, 2)); }, "is of step 2"},
};

class Damaged : public testing::TestWithParam<Damage> {};

TEST_P(Damaged, IsReportedAndTheOneBeforeIsUsed) {
  const TempFolder folder;
  const std::string dir = two_ranks_run(folder);
  GetParam().make(dir);
  const auto expect_passed_over = [](const Said& said) {
    EXPECT_EQ(said.code, 0) << said.out;
    EXPECT_EQ(said.count("step_00000004 cannot be used and is passed over"), 1) << said.out;
    EXPECT_TRUE(said.contains(GetParam().cause)) << said.out;
  };
  const Said evaluated = run("$NSP eval --run.dir " + dir);
  expect_passed_over(evaluated);
  EXPECT_TRUE(evaluated.contains("step 2: loss")) << evaluated.out;
  expect_passed_over(run("$NSP generate --prompt x --tokens 3 --run.dir " + dir));
  const Said resumed = run("$NSP --run.dir " + dir + " --train.threads 1 --train.steps 6");
  expect_passed_over(resumed);
  EXPECT_TRUE(resumed.contains("resumed from step 2 ")) << resumed.out;
  EXPECT_EQ(run("$NSP checkpoint verify " + dir).code, 0) << "the damaged one is written anew";
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, Damaged, testing::ValuesIn(damages), [](const auto& info) { return std::string(info.param.name); });

// Only the moments are hit: the model is good, and so is an older checkpoint to go on from.
TEST(DamagedMoments, KeepNobodyFromUsingTheModel) {
  const TempFolder folder;
  const std::string dir = two_ranks_run(folder);
  const Said before = run("$NSP eval --run.dir " + dir);
  flip_in_tensor(dir, 4, "/state/adamw.v/blocks.0.mlp.fc.weight");
  EXPECT_EQ(run("$NSP checkpoint verify " + dir).code, 4);
  const Said evaluated = run("$NSP eval --run.dir " + dir);
  EXPECT_EQ(evaluated.out, before.out);
  EXPECT_TRUE(evaluated.contains("step 4: loss")) << evaluated.out;
  EXPECT_TRUE(run("$NSP --run.dir " + dir + " --train.threads 1 --train.steps 6").contains("resumed from step 2 "));
}

// Each rank looks at a share of the pieces; what any of them finds counts for all.
TEST(DamagedMoments, AreFoundWhicheverRankLooksAtThem) {
  for (const char* tensor :
       {"/state/adamw.m/blocks.0.ln1.weight", "/state/adamw.v/blocks.0.mlp.fc.weight", "/state/adamw.v/head.ln.bias"}) {
    const TempFolder folder;
    const std::string dir = two_ranks_run(folder);
    flip_in_tensor(dir, 4, tensor);
    const Said resumed = run("mpirun -np 3 $NSP --run.dir " + dir + " --train.threads 1 --train.steps 6");
    EXPECT_EQ(resumed.code, 0) << resumed.out;
    EXPECT_EQ(resumed.count("step_00000004 cannot be used and is passed over"), 1) << resumed.out;
    EXPECT_TRUE(resumed.contains(std::string("'") + tensor + "'") && resumed.contains("resumed from step 2 ")) << resumed.out;
  }
}

// Two hosts with a copy each, under the same name; that of the second one is damaged.
TEST(DamagedCheckpoints, OfModelInitAreFoundByAllRanksTogether) {
  const TempFolder here, there;
  const std::string dir = two_ranks_run(here);
  cut(manifest_of(two_ranks_run(there), 4), 1000);
  const auto start = [&](const std::string& init, const std::string& out) {
    return " $NSP" + tiny({{"model.layers", ""},
                           {"model.hidden", ""},
                           {"model.heads", ""},
                           {"model.context", ""},
                           {"model.init", init},
                           {"data.path", prepared_data()},
                           {"train.steps", "1"},
                           {"run.dir", here / out}});
  };
  const Said said = run("mpirun -np 1 -wdir " + here.path() + start("run", "out") + " : -np 1 -wdir " + there.path() + start("run", "out"));
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("step_00000004 cannot be used and is passed over"), 1) << said.out;
  ASSERT_EQ(run("mpirun -np 2" + start(dir + "/checkpoints/step_00000002", "expected")).code, 0);
  EXPECT_EQ(losses(here / "out", 1), losses(here / "expected", 1));
}

TEST(DamagedCheckpoints, AllOfThemAreAnErrorThatSaysSo) {
  const TempFolder folder;
  const std::string dir = two_ranks_run(folder);
  for (int step : {2, 4}) flip_in_tensor(dir, step, "/model/blocks.0.mlp.fc.weight");
  expect_refusal(run("$NSP generate --prompt x --run.dir " + dir), 4, {"no usable checkpoint in " + dir, "step_00000004"},
                 "Name a run directory that holds one");
  expect_refusal(run("$NSP --run.dir " + dir + " --train.threads 1 --train.steps 6"), 4, {"none of the 2 checkpoints"},
                 "choose another --run.dir");
}

}  // namespace
}  // namespace nsp::test
