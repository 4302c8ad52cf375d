#include "io/checkpoint_cli.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "io/hdf5_store.hpp"
#include "sample_checkpoint.hpp"
#include "temp_folder.hpp"

namespace nsp::test {
namespace {

class CheckpointCli : public testing::Test {
 protected:
  std::string ls(int expected) {
    std::ostringstream out;
    EXPECT_EQ(checkpoint_ls(folder_.path(), out), expected);
    return out.str();
  }
  std::string verify(int expected) {
    std::ostringstream out;
    EXPECT_EQ(checkpoint_verify(folder_.path(), out), expected);
    return out.str();
  }
  // The line of a step.
  static std::string line(const std::string& text, const std::string& step) {
    std::istringstream in(text);
    for (std::string row; std::getline(in, row);) {
      std::istringstream words(row);
      std::string first;
      words >> first;
      if (first == step) return row;
    }
    return {};
  }
  TempFolder folder_;
  Hdf5Store store_{folder_ / "checkpoints"};
};

TEST_F(CheckpointCli, LsShowsEveryStateAStepCanBeIn) {
  EXPECT_NE(ls(0).find("no checkpoints"), std::string::npos);
  for (int64_t step : {10, 20, 30}) write_sample(store_, step, 2);
  write_shards(store_, 40, 1);
  std::ofstream(store_.where(20) + "/manifest.h5", std::ios::trunc) << "torn";
  std::filesystem::remove(store_.where(30) + "/r7_00000030_rank_0001.h5");
  const std::string text = ls(0);
  EXPECT_NE(line(text, "10").find("complete"), std::string::npos) << text;
  EXPECT_NE(line(text, "10").find(" 2 "), std::string::npos) << text;  // replicas
  EXPECT_NE(line(text, "10").find("KiB"), std::string::npos) << text;
  EXPECT_NE(line(text, "10").find("Z "), std::string::npos) << text;  // when
  EXPECT_NE(line(text, "20").find("torn"), std::string::npos) << text;
  EXPECT_NE(line(text, "30").find("r7_00000030_rank_0001.h5 is missing"), std::string::npos) << text;
  EXPECT_NE(line(text, "40").find("incomplete"), std::string::npos) << text;
}

TEST_F(CheckpointCli, VerifyReadsEverythingAndSaysFour) {
  EXPECT_THROW(verify(0), Error);
  write_sample(store_, 10, 2);
  write_sample(store_, 20, 2);
  EXPECT_NE(verify(0).find("step 20: good"), std::string::npos);
  const std::string shard = store_.where(20) + "/r7_00000020_rank_0000.h5";
  const std::vector<char> data = sample_bytes(sample_tensors()[3], 20, 0, 10);
  std::string bytes;
  {
    std::ifstream in(shard, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::size_t at = bytes.find(std::string(data.begin(), data.end()));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  std::ofstream(shard, std::ios::binary | std::ios::trunc) << bytes;
  const std::string text = verify(4);
  EXPECT_NE(text.find("step 10: good"), std::string::npos) << text;
  EXPECT_NE(text.find("step 20: DAMAGED"), std::string::npos) << text;
  EXPECT_NE(text.find("/model/half"), std::string::npos) << text;
  EXPECT_NE(text.find("r7_00000020_rank_0000.h5"), std::string::npos) << text;
  std::ofstream(store_.where(10) + "/manifest.h5", std::ios::trunc) << "torn";
  EXPECT_NE(verify(4).find("2 of 2"), std::string::npos);
}

TEST_F(CheckpointCli, NoRunDirectory) {
  std::ostringstream out;
  EXPECT_THROW(checkpoint_ls(folder_ / "absent", out), Error);
  EXPECT_THROW(checkpoint_verify(folder_ / "absent", out), Error);
}

}  // namespace
}  // namespace nsp::test
