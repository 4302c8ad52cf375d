// The checkpoint files of a run as other programs see them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/cli/command.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

// What h5py makes of a checkpoint.
struct Seen {
  bool installed = false;
  Tensors tensors;
  std::map<std::string, int> nans;
};

Seen read_with_h5py(const TempFolder& folder, const std::string& checkpoint) {
  Seen seen;
  const std::string output = folder / "h5py.bin";
  Said said;
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    said = run(std::string(python) + " " + std::getenv("NSP_TEST_SOURCE_DIR") + "/tests/cli/read_checkpoint.py " + checkpoint +
               "/manifest.h5 " + output);
    if (said.code != 77 && said.code != 127) break;
  }
  if (said.code == 77 || said.code == 127) return seen;
  seen.installed = true;
  EXPECT_EQ(said.code, 0) << said.out;
  const std::string bytes = read_file(output);
  std::size_t at = 0;
  std::istringstream lines(said.out);
  std::string name;
  for (std::size_t elements = 0, nans = 0; lines >> name >> elements >> nans; at += 4 * elements) {
    const auto* values = reinterpret_cast<const float*>(bytes.data() + at);
    seen.tensors[name].assign(values, values + elements);
    seen.nans[name] = static_cast<int>(nans);
  }
  EXPECT_EQ(at, bytes.size());
  return seen;
}

// HDF5's own tools (hdf5-tools, which setup.sh installs): every tensor is listed, and values over several shards are nsp's.
void expect_tools_read(const std::string& checkpoint, const Tensors& own) {
  const std::string manifest = checkpoint + "/manifest.h5";
  Said said = run("h5ls -r " + manifest);
  EXPECT_EQ(said.code, 0) << said.out;
  for (const auto& [name, values] : own) EXPECT_TRUE(said.contains("\n" + name + " ")) << name << " is not in\n" << said.out;
  EXPECT_TRUE(std::regex_search(said.out, std::regex("\n/model/embedding.wte +Dataset \\{500, 64\\}\n"))) << said.out;
  EXPECT_TRUE(std::regex_search(said.out, std::regex("\n/nsp/tensors/name +Dataset"))) << said.out;

  said = run("h5dump -H " + manifest);
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_FALSE(said.contains("error")) << said.out;
  EXPECT_EQ(said.count("DATATYPE  H5T_IEEE_F32LE\n"), static_cast<int>(own.size()));
  EXPECT_TRUE(said.contains("DATASET \"embedding.wte\" {\n         DATATYPE  H5T_IEEE_F32LE\n         DATASPACE  SIMPLE { ( 500, 64 )"))
      << said.out;

  const std::vector<float>& wanted = own.at("/model/embedding.wte");
  said = run("h5dump -y -w 1 -m %.9g -A 0 -d /model/embedding.wte " + manifest);
  EXPECT_EQ(said.code, 0) << said.out.substr(0, 1000);
  std::istringstream numbers(said.out.substr(std::min(said.out.find("DATA {") + 6, said.out.size())));
  std::vector<float> values;
  for (std::string word; numbers >> word && word != "}";) values.push_back(std::strtof(word.c_str(), nullptr));
  EXPECT_EQ(values, wanted);
}

TEST(CheckpointFile, AnyHdf5ReaderSeesEachTensorWhole) {
  const TempFolder folder;
  const Said said = run(ranks(4) + " --plugins desloc,autosp --autosp.degree 2" + tiny_run(folder / "run", 3));
  ASSERT_EQ(said.code, 0) << said.out;
  const Seen seen = read_with_h5py(folder, folder / "run/checkpoints/step_00000003");
  const Tensors own = read_checkpoint(folder / "run", 3);
  expect_tools_read(folder / "run/checkpoints/step_00000003", own);
  if (!seen.installed) GTEST_SKIP() << "python3 has no h5py and numpy";
  EXPECT_EQ(differences(own, seen.tensors), "");
  for (const auto& [name, nans] : seen.nans) EXPECT_EQ(nans, 0) << name;
  for (const char* weight : {"embedding.wte", "embedding.wpe", "blocks.0.attn.qkv.weight", "blocks.1.mlp.proj.weight", "head.ln.weight"})
    EXPECT_EQ(seen.tensors.count(std::string("/model/") + weight), 1u) << weight;
  // /model is the mean of the replicas, of which each kept its own state.
  const std::vector<float>&mean = own.at("/model/embedding.wte"), &a = own.at("/replica_0000/weights/embedding.wte"),
        &b = own.at("/replica_0001/weights/embedding.wte");
  EXPECT_NE(a, b);
  for (std::size_t i = 0; i < mean.size(); i += 97) EXPECT_NEAR(mean[i], (a[i] + b[i]) / 2, 1e-7);
}

TEST(CheckpointFile, LostShardIsSeenAndPassedOver) {
  const TempFolder folder;
  const std::string start = ranks(4) + " --plugins desloc,autosp --autosp.degree 2 --train.checkpoint_every 2";
  Said said = run(start + tiny_run(folder / "run", 4));
  ASSERT_EQ(said.code, 0) << said.out;
  const std::string newest = folder / "run/checkpoints/step_00000004";
  ASSERT_TRUE(std::filesystem::remove(newest + "/run_00000004_rank_0003.h5"));

  const Seen seen = read_with_h5py(folder, newest);
  if (seen.installed) {
    int with_nan = 0;
    for (const auto& [name, nans] : seen.nans) with_nan += nans > 0 ? 1 : 0;
    EXPECT_GT(with_nan, 0);
    EXPECT_GT(seen.nans.at("/model/embedding.wpe") + seen.nans.at("/model/blocks.1.mlp.proj.weight"), 0);
  }
  said = run("$NSP checkpoint verify " + (folder / "run"));
  EXPECT_EQ(said.code, 4) << said.out;
  EXPECT_TRUE(said.contains("step 2: good") && said.contains("step 4: DAMAGED") && said.contains("run_00000004_rank_0003.h5")) << said.out;

  said = run(start + tiny_run(folder / "run", 6));
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(said.contains("step_00000004 cannot be used and is passed over")) << said.out;
  EXPECT_TRUE(said.contains("run_00000004_rank_0003.h5")) << said.out;
  EXPECT_TRUE(said.contains("resumed from step 2")) << said.out;
  losses(folder / "run", 6);
  said = run("$NSP checkpoint verify " + (folder / "run"));  // step 4 has been written again
  EXPECT_EQ(said.code, 0) << said.out;
}

}  // namespace
}  // namespace nsp::test
