// What must be equal: another cut of the same work gives the same training. In one process, on the CPU and on fake devices.
#include <gtest/gtest.h>

#include <cmath>

#include "core/tensor/core_states.hpp"
#include "tests/train/compare_runs.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

LocalSettings base(int steps) {
  LocalSettings s = tiny_settings();
  s.train.clip = 1.0;
  s.train.steps = steps;
  s.global_batch = 8;
  return s;
}

TEST(Equivalence, TwoRanksDdpAreOneRankWithTwiceTheMicroSteps) {
  LocalSettings one = base(20), two = base(20);
  one.micro_batch = two.micro_batch = 2;
  two.ranks = 2;
  const LocalResult a = run_local(one), b = run_local(two);
  expect_losses(a, b, 1e-6);
  EXPECT_EQ(b.weight_hashes[0], b.weight_hashes[1]);
}

TEST(Equivalence, DdpOnFakeDevicesIsDdpOnTheCpu) {
  LocalSettings cpu = base(6), fake = base(6);
  cpu.ranks = fake.ranks = 2;
  fake.fake_device = true;
  expect_same_bits(run_local(cpu), run_local(fake));
}

TEST(Equivalence, BucketsDoNotChangeBits) {
  LocalSettings large = base(5), small = base(5);
  large.ranks = small.ranks = 3;
  small.bucket_elements = 1000;
  expect_same_bits(run_local(large), run_local(small));
}

class AutospDegree : public testing::TestWithParam<int> {};

TEST_P(AutospDegree, LossesAndEveryGradientAreThoseOfDegreeOne) {
  const int degree = GetParam();
  GradientRecorder one_gradients, many_gradients;
  const LocalResult a = run_recorded(base(5), one_gradients), b = run_recorded(with_autosp(base(5), degree), many_gradients);
  expect_losses(a, b, 1e-5);
  expect_close_gradients(one_gradients, many_gradients, 1e-5);
  for (std::size_t r = 1; r < b.weight_hashes.size(); ++r) EXPECT_EQ(b.weight_hashes[0], b.weight_hashes[r]);
}

INSTANTIATE_TEST_SUITE_P(Degrees, AutospDegree, testing::Values(2, 3, 4));

TEST(Equivalence, UnevenTokensAndHeadsOverThreeRanksOnFakeDevices) {
  LocalSettings three = with_autosp(base(4), 3);  // 64 tokens and 4 heads are cut unevenly
  three.fake_device = true;
  expect_losses(run_local(base(4)), run_local(three), 1e-5);
}

TEST(Equivalence, DeslocOnOneReplicaIsPlainAdamwBitForBit) {
  LocalSettings plain = base(12), desloc = base(12);
  desloc.sync = "desloc";
  desloc.options = {{"desloc.kx", "2"}, {"desloc.ku", "4"}, {"desloc.kv", "8"}};
  expect_same_bits(run_local(plain), run_local(desloc));
}

// The same windows for all replicas: then they stay equal, and an average must not change a bit.
class SameForAll : public DataSource {
 public:
  explicit SameForAll(std::unique_ptr<DataSource> all, int64_t share, int64_t global)
      : all_(std::move(all)), share_(share), global_(global) {}
  int64_t samples() const override { return all_->samples(); }
  int64_t context() const override { return all_->context(); }
  int64_t vocabulary() const override { return all_->vocabulary(); }
  const std::string& tokenizer() const override { return all_->tokenizer(); }
  const std::string& fingerprint() const override { return all_->fingerprint(); }
  double bytes_per_token() const override { return all_->bytes_per_token(); }
  void read(int64_t sample, int32_t* tokens, int32_t* starts) override {
    all_->read(sample / global_ * global_ + sample % global_ % share_, tokens, starts);
  }

 private:
  std::unique_ptr<DataSource> all_;
  int64_t share_, global_;
};

TEST(Equivalence, IdenticalReplicasStayIdenticalThroughAverages) {
  LocalSettings s = base(10);
  s.ranks = 3;
  s.global_batch = 6;
  s.sync = "desloc";
  s.options = {{"desloc.kx", "2"}, {"desloc.ku", "2"}, {"desloc.kv", "4"}};
  s.train_data = [] { return std::make_unique<SameForAll>(tiny_data("train"), 2, 6); };
  const LocalResult many = run_local(s);
  EXPECT_EQ(many.weight_hashes[0], many.weight_hashes[1]);
  EXPECT_EQ(many.weight_hashes[0], many.weight_hashes[2]);
}

struct ResumeCase {
  const char* sync;
  int replicas, degree;
  bool fake;
};
class Resume : public testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, TwentyAndTwentyAreForty) {
  const ResumeCase c = GetParam();
  LocalSettings s = base(40);
  s.ranks = c.replicas;
  s.sync = c.sync;
  s.fake_device = c.fake;
  s.shuffle = true;
  s.train.schedule.kind = ScheduleKind::cosine;
  s.train.schedule.steps = 40;
  if (s.sync == "desloc") s.options = {{"desloc.kx", "3"}, {"desloc.ku", "9"}, {"desloc.kv", "18"}};
  expect_resume_is_whole(with_autosp(s, c.degree), 20);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Resume,
                         testing::Values(ResumeCase{"ddp", 2, 1, false}, ResumeCase{"desloc", 2, 1, false}, ResumeCase{"ddp", 1, 2, false},
                                         ResumeCase{"desloc", 2, 2, false}, ResumeCase{"desloc", 2, 2, true}));

TEST(Checkpoint, AFailedOneIsRemovedAndTrainingGoesOn) {
  LocalSettings s = base(6);
  s.ranks = 2;
  s.train.checkpoint_every = 2;
  MemoryStore store;
  store.fail(MemoryStore::Operation::put, 40);  // in the first or second checkpoint
  s.store = &store;
  run_local(s);
  const std::vector<int64_t> steps = store.list();
  EXPECT_EQ(steps.back(), 6);
  EXPECT_EQ(steps.size(), 2u);
  EXPECT_EQ(store.uncommitted_pieces(), 0u);
}

TEST(Bytes, DeslocSendsWhatTheFormulaSaysAtDegreeOneAndTwo) {
  for (const int degree : {1, 2}) {
    LocalSettings s = base(10);
    s.ranks = 2;
    s.sync = "desloc";
    s.options = {{"desloc.kx", "2"}, {"desloc.ku", "4"}, {"desloc.kv", "8"}};
    const LocalResult r = run_local(with_autosp(s, degree));
    double sum = 0;
    for (const std::string& line : r.metrics)
      if (const double step = json_number(line, "step"); line.find("\"kind\":\"step\"") != std::string::npos && step >= 2 && step <= 9)
        sum += json_number(line, "sync_bytes");
    const Transformer model(s.spec.completed());
    EXPECT_EQ(sum, 2.0 * 1 * 4 * static_cast<double>(model.table().total()) * (8.0 / 2 + 8.0 / 4 + 1)) << "degree " << degree;
  }
}

TEST(BadSteps, ASkippedStepLeavesTheStateAndEndsInDivergedWhenItRepeats) {
  LocalSettings s = base(8);
  s.train.max_bad_steps = 3;
  s.before = [](TrainParts& parts) {  // a weight that is not a number makes every loss so
    const float bad = std::nanf("");
    const TensorView w = parts.arena.view(weights_state, {0, 0, 1});
    parts.stream.copy(w.data(), &bad, sizeof bad);
    parts.wait.wait(*record_event(parts.device, parts.stream, "poison"));
  };
  try {
    run_local(s);
    FAIL() << "training went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::diverged);
    EXPECT_NE(std::string(e.what()).find("3 steps in a row"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace nsp::test
