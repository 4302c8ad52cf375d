// Run directories and checkpoints that cannot be used, launchers that do not fit, and errors of several ranks. What a run has
// written is never lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

std::string mpirun(int ranks) {
  return "mpirun -np " + std::to_string(ranks) + " ";
}

std::string train(const std::string& run_dir, Keys changed = {}) {
  changed["run.dir"] = run_dir;
  changed.emplace("data.path", prepared_data());
  return "$NSP" + tiny(changed);
}

// Goes on with a run; what is not given comes from its checkpoint.
std::string resume(const std::string& run_dir, const std::string& more = "") {
  return "$NSP --run.dir " + run_dir + " --train.threads 1 --train.steps 6 " + more;
}

// A command that must be refused, with a run that must keep everything.
void expect_refused_unharmed(const std::string& run_dir, const std::string& command, int code, const std::vector<std::string>& cause,
                             const std::string& cure) {
  const Written before = written(run_dir);
  expect_refusal(run(command), code, cause, cure);
  expect_nothing_lost(run_dir, before);
}

TEST(RunDirectory, CannotBeMade) {
  const TempFolder folder;
  write_file(folder / "file", "mine");
  expect_refusal(run(train(folder / "file")), 1, {"cannot make the run directory " + (folder / "file"), "Not a directory"},
                 "Choose another with --run.dir");
  expect_refusal(run(train(folder / "file/run")), 1, {"cannot make the run directory", "Not a directory"}, "Choose another with --run.dir");
  expect_refusal(run(train("/proc/run")), 1, {"cannot make the run directory /proc/run"}, "change the permissions of its parent");
  EXPECT_EQ(read_file(folder / "file"), "mine");
  expect_refusal(run("$NSP --run.dir ''"), 2, {"run.dir is empty"}, "Name one with --run.dir");
}

// /proc/self/fd exists and takes no files, from root neither: what a read-only file system does.
TEST(RunDirectory, CannotBeWritten) {
  expect_refusal(run(train("/proc/self/fd")), 1, {"cannot write the run lock"}, "your permissions");
}

TEST(RunDirectory, SecondJobNamesHostAndProcess) {
  const TempFolder folder;
  const std::string dir = folder / "run";
  Background first(train(dir, {{"train.steps", "100000"}, {"run.log_every", "1"}, {"train.checkpoint_every", "0"}}));
  ASSERT_TRUE(first.wait_for("step ", 60));
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string holder = "process " + std::to_string(first.pid()) + " on host " + host;
  expect_refusal(run(train(dir)), 2, {"another job runs in " + dir, holder}, "choose another run.dir");
  expect_refusal(run(mpirun(2) + train(dir)), 2, {"another job runs in " + dir, holder}, "choose another run.dir");
  first.signal(SIGUSR1);
  const Said said = first.wait(60);
  EXPECT_EQ(said.code, 75) << said.out;
  EXPECT_EQ(run("$NSP checkpoint verify " + dir).code, 0) << "the first job goes on undisturbed";
}

TEST(RunDirectory, OfAnotherModel) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  expect_refused_unharmed(dir, resume(dir, "--model.layers 3"), 2, {"run of another model", "model.layers: 1 -> 3"},
                          "Leave these keys out, or choose another --run.dir");
  expect_refused_unharmed(dir, mpirun(2) + resume(dir, "--model.hidden 64"), 2, {"run of another model", "model.hidden: 32 -> 64"},
                          "choose another --run.dir");
}

TEST(RunDirectory, OfOtherData) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  write_file(folder / "a.txt", std::string(3000, 'a'));
  ASSERT_EQ(run("$NSP prepare --input " + (folder / "a.txt") + " --output " + (folder / "other")).code, 0);
  expect_refused_unharmed(dir, resume(dir, "--data.path " + (folder / "other")), 2, {"data.path is other data", "in the checkpoint"},
                          "Use the run's own data");
  const std::string llmc = golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin");
  expect_refused_unharmed(dir, resume(dir, "--data.path " + llmc), 2, {"tokenizer is llmc", "trained with bytes"},
                          "Use the run's own data");
}

TEST(RunDirectory, ResumeNever) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  expect_refused_unharmed(dir, resume(dir, "--run.resume never"), 2, {"run.resume = never", dir + " holds checkpoints", "overwrite"},
                          "Choose another --run.dir");
}

TEST(RunDirectory, MistypedOptionsHarmNothing) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  expect_refused_unharmed(dir, resume(dir, "--train.lr fast"), 2, {"train.lr = fast"}, "Write it like");
  expect_refused_unharmed(dir, resume(dir, "--plugins desloc --desloc.kx 8 --desloc.ku 4"), 2, {"desloc.ku 4 is less than desloc.kx 8"},
                          "--desloc.ku 24");
  expect_refused_unharmed(dir, resume(dir, "--data.path " + (folder / "none")), 4, {"none does not exist"}, "Check the path");
}

TEST(RunDirectory, PlanThatDoesNotFit) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  expect_refused_unharmed(dir, resume(dir, "--train.global_batch 50000000 --train.micro_batch 50000000"), 3,
                          {"the plan does not fit into host memory", "TiB", "is free there"}, "--train.micro_batch ");
  const Keys huge = {{"model.hidden", "65536"}, {"model.heads", "64"}, {"model.layers", "100"}};
  expect_refusal(run(train(folder / "new", huge)), 3, {"does not fit into host memory"}, "Use a smaller model");
  expect_refusal(run(mpirun(2) + train(folder / "new", huge)), 3, {"does not fit into host memory"}, "Use a smaller model");
}

TEST(Checkpoint, TornManifestFallsBackToTheOneBefore) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  cut(manifest_of(dir, 4), 1000);
  const Said said = run(resume(dir));
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("is passed over"), 1) << said.out;
  EXPECT_TRUE(said.contains("manifest.h5 is torn or damaged")) << said.out;
  EXPECT_TRUE(said.contains("resumed from step 2")) << said.out;
  const std::string log = read_file(dir + "/metrics.jsonl");
  for (int step = 1; step <= 6; ++step) {
    const std::string record = "{\"kind\":\"step\",\"step\":" + std::to_string(step) + ",";
    ASSERT_NE(log.find(record), std::string::npos) << "step " << step << " is lost";
    EXPECT_EQ(log.find(record, log.find(record) + 1), std::string::npos) << "step " << step << " stands twice";
  }
}

TEST(Checkpoint, TornManifestOfTheOnlyOne) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  fs::remove_all(fs::path(manifest_of(dir, 2)).parent_path());
  cut(manifest_of(dir, 4), 1000);
  const Written before = written(dir);
  expect_refusal(run(resume(dir)), 4, {"none of the 1 checkpoints", dir + "/checkpoints"}, "choose another --run.dir");
  expect_refusal(run(mpirun(2) + resume(dir)), 4, {"none of the 1 checkpoints", dir + "/checkpoints"}, "choose another --run.dir");
  expect_refusal(run("$NSP generate --prompt x --run.dir " + dir), 4, {"no usable checkpoint in " + dir, "torn or damaged"},
                 "Name a run directory that holds one");
  EXPECT_TRUE(written(dir) == before) << "what is left may still be repaired";
}

TEST(Checkpoint, FlippedByteIsFoundAndPassedOver) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder), shard = shard_of(dir, 4);
  flip(shard, fs::file_size(shard) / 2);
  const Said verified = run("$NSP checkpoint verify " + dir);
  EXPECT_EQ(verified.code, 4) << verified.out;
  EXPECT_TRUE(verified.contains("step 2: good")) << verified.out;
  EXPECT_TRUE(verified.contains("in shard " + shard)) << verified.out;
  EXPECT_TRUE(verified.contains("Its checksum differs. Use an earlier checkpoint")) << verified.out;
  const Said said = run(resume(dir));
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(said.count("is passed over"), 1) << said.out;
  EXPECT_TRUE(said.contains("in shard " + shard)) << said.out;
  EXPECT_TRUE(said.contains("resumed from step 2")) << said.out;
  EXPECT_EQ(run("$NSP checkpoint verify " + dir).code, 0) << "the damaged one is written anew";
}

TEST(Checkpoint, MissingShardIsPassedOver) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder), shard = shard_of(dir, 4);
  fs::remove(shard);
  const Said verified = run("$NSP checkpoint verify " + dir);
  EXPECT_EQ(verified.code, 4) << verified.out;
  EXPECT_TRUE(verified.contains(shard + " cannot be read. The shard is missing")) << verified.out;
  const Said said = run(mpirun(2) + resume(dir));
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("The shard is missing")) << said.out;
  EXPECT_TRUE(said.contains("resumed from step 2")) << said.out;
}

// Reading stops with work on the way to the device; the memory must not go away under it.
TEST(Checkpoint, TruncatedShardThatIsNamed) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder), shard = shard_of(dir, 4);
  cut(shard, 3000);
  const std::string step = fs::path(shard).parent_path();
  for (int i = 0; i < 3; ++i)
    expect_refusal(run("$NSP generate --prompt x --run.resume " + step + " --run.dir " + dir), 4, {"in shard " + shard, "truncated"},
                   "Use an earlier checkpoint");
  expect_refusal(run(resume(dir, "--run.resume " + step)), 4, {"in shard " + shard, "truncated"}, "Use an earlier checkpoint");
}

TEST(Checkpoint, NamedOneThatIsNotThere) {
  const TempFolder folder;
  const std::string dir = copy_of_run(folder);
  expect_refused_unharmed(dir, resume(dir, "--run.resume " + dir + "/checkpoints/step_00000003"), 4,
                          {"there is no checkpoint", "step_00000003"}, "Use another step");
  expect_refused_unharmed(dir, resume(dir, "--run.resume " + dir + "/checkpoints/step_last"), 2, {"step_last is not a checkpoint"},
                          "Name one of them, or a run directory");
}

TEST(Checkpoint, NoneAtAll) {
  const TempFolder folder;
  for (const char* verb : {"generate --prompt x", "eval"})
    expect_refusal(run("$NSP " + std::string(verb) + " --run.dir " + folder.path()), 4, {"no usable checkpoint in " + folder.path()},
                   "or train first");
  expect_refusal(run("$NSP checkpoint verify " + (folder / "none")), 4, {"no run directory " + (folder / "none")},
                 "Give the run.dir of a run");
  expect_refusal(run("$NSP checkpoint verify " + folder.path()), 4, {"nothing to verify"}, "Give the run.dir of a run that wrote one");
  expect_refusal(run("$NSP checkpoint ls " + (folder / "none")), 4, {"no run directory " + (folder / "none")}, "Give the run.dir of a run");
}

TEST(Ranks, FewerSequencesThanReplicas) {
  const TempFolder folder;
  expect_refusal(run(mpirun(4) + train(folder / "run", {{"train.global_batch", "2"}})), 2, {"4 replicas cannot share train.global_batch 2"},
                 "Raise train.global_batch to 4");
}

TEST(Ranks, DegreeOfSequenceParallelism) {
  const TempFolder folder;
  const auto degree = [&](int n, const std::string& value) {
    return run(mpirun(n) + train(folder / "run", {{"plugins", "autosp"}, {"autosp.degree", value}}));
  };
  expect_refusal(degree(2, "3"), 2, {"autosp.degree 3 does not fit", "3 does not divide 2 ranks"}, "Use one of 1, 2");
  expect_refusal(degree(4, "4"), 2, {"autosp.degree 4 does not fit", "the model has 2"}, "Use a degree of at most 2");
  expect_refusal(degree(2, "0"), 2, {"autosp.degree '0' is not a degree"}, "a whole number from 1");
}

TEST(Ranks, ErrorsOfAllArePrintedOnce) {
  const TempFolder folder;
  expect_refusal(run(mpirun(2) + train(folder / "run", {{"train.lr", "abc"}})), 2, {"train.lr = abc"}, "Write it like");
  expect_refusal(run(mpirun(2) + train(folder / "run", {{"model.layer", "2"}})), 2, {"--model.layer"}, "Did you mean --model.layers?");
  expect_refusal(run(mpirun(2) + train(folder / "run", {{"model.vocab", "100"}})), 2, {"the data needs 257"}, "Raise model.vocab");
  expect_refusal(run(mpirun(2) + train("/proc/run")), 1, {"cannot make the run directory"}, "Choose another with --run.dir");
  const std::string data = copy_of_data(folder);
  cut(data + "/train_00000.tokens", 10);
  expect_refusal(run(mpirun(2) + train(folder / "run", {{"data.path", data}})), 4, {"is truncated"}, "Copy it again");
}

// Sequences 2 and 3 of a step are rank 1's, the token is in sequence 2.
TEST(Ranks, ErrorOfOneRankEndsTheJobAndNamesIt) {
  const TempFolder folder;
  std::string tokens = read_file(golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin"));
  const uint16_t token = 60000;
  std::memcpy(&tokens[1024 + 2 * 80], &token, sizeof token);
  write_file(folder / "range.bin", tokens);
  const Said said =
      run(mpirun(2) + train(folder / "run", {{"data.path", folder / "range.bin"}, {"model.vocab", "500"}, {"data.shuffle", "false"}}));
  expect_refusal(said, 4, {"token 60000 at index 80", "(rank 1 on "}, "copy the file again");
}

// Four processes that each think they are the whole job, as after starting with another MPI's mpirun.
TEST(Launcher, DoesNotFitTheCommunicator) {
  const TempFolder folder;
  const std::string fake = "env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 ";
  expect_refusal(run(fake + train(folder / "run")), 1, {"launcher", "started 4 processes", "would train alone"},
                 "Start nsp with the launcher of the MPI");
  expect_refusal(run(fake + train(folder / "run", {{"comm", "self"}})), 2, {"comm = self", "Open MPI started 4", "would train alone"},
                 "Leave comm out");
  EXPECT_FALSE(fs::exists(folder / "run")) << "refused before anything is written";
}

}  // namespace
}  // namespace nsp::test
