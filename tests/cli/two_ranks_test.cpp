// nsp_app with two ranks, in runs short enough for a sanitizer build: start, checkpoint, resume, evaluation on the mean, sample.
#include <gtest/gtest.h>

#include "tests/cli/command.hpp"

namespace nsp::test {
namespace {

void train_in_two_parts(const std::string& plugins) {
  const TempFolder folder;
  const std::string start = "mpirun -np 2 $NSP " + plugins + " --train.checkpoint_every 2 ";
  const Said first = run(start + tiny_run(folder / "run", 4), 300);
  ASSERT_EQ(first.code, 0) << first.out;
  const Said second = run(start + tiny_run(folder / "run", 8), 300);
  ASSERT_EQ(second.code, 0) << second.out;
  EXPECT_TRUE(second.contains("resumed from step 4")) << second.out;
  EXPECT_TRUE(second.contains("validation loss")) << second.out;
  const std::string metrics = read_file(folder / "run/metrics.jsonl");
  for (int step = 1; step <= 8; ++step)
    EXPECT_NE(metrics.find("\"step\":" + std::to_string(step) + ",\"loss\""), std::string::npos) << step;
  const Said verified = run("$NSP checkpoint verify " + (folder / "run"), 300);
  EXPECT_EQ(verified.code, 0) << verified.out;
}

TEST(TwoRanks, Ddp) {
  train_in_two_parts("");
}

TEST(TwoRanks, DeslocInMidPeriod) {
  train_in_two_parts("--plugins desloc --desloc.kx 3 --desloc.ku 3 --desloc.kv 6");
}

TEST(TwoRanks, OneReplicaOfTwoSequenceRanks) {
  train_in_two_parts("--plugins autosp --autosp.degree 2");
}

}  // namespace
}  // namespace nsp::test
