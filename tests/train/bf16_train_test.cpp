// Training in bf16: near fp32 within the bounds of docs/numerics.md, and equal bit for bit where fp32 is.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "tests/train/compare_runs.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

// docs/numerics.md gives the reasons.
constexpr double loss_bound = 3e-4, norm_bound = 1e-2;  // relative; of losses, and of gradient norms

LocalSettings bf16(int steps, int ranks = 1) {
  LocalSettings s = tiny_settings();
  s.dtype = DType::bf16;
  s.train.steps = steps;
  s.train.clip = 1.0;
  s.ranks = ranks;
  s.global_batch = 8;
  return s;
}

LocalSettings with_desloc(LocalSettings s) {
  s.sync = "desloc";
  s.options["desloc.kx"] = "3";
  s.options["desloc.ku"] = "9";
  s.options["desloc.kv"] = "18";
  return s;
}

void expect_near(const LocalResult& a, const LocalResult& b) {
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i)
    for (const auto& [key, bound] : {std::pair("loss", loss_bound), std::pair("grad_norm", norm_bound)}) {
      const double x = json_number(a.metrics[i], key), y = json_number(b.metrics[i], key);
      if (std::isnan(x) && std::isnan(y)) continue;
      EXPECT_NEAR(x, y, bound * std::abs(x)) << key << ", line " << i;
    }
}

// The numbers that follow a text in the reference output, in order.
std::vector<double> expected(const std::string& text) {
  std::ifstream in(golden("llmc_tiny/expected_torch_fp64.txt"));
  std::vector<double> out;
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find(text); at != std::string::npos)
      out.push_back(std::strtod(line.c_str() + at + text.size(), nullptr));
  return out;
}

TEST(Bf16, FortyOneStepsOfATinyGpt2AreNearTheFloat64Reference) {
  LocalSettings s = tiny_settings();
  s.dtype = DType::bf16;
  s.options = {{"adamw.beta2", "0.999"}, {"adamw.weight_decay", "0"}};
  s.train.steps = 41;
  s.train.eval_every = 10;
  s.val_data = [] { return tiny_data("val"); };
  const LocalResult r = run_local(s);
  const std::vector<double> losses = expected("train loss "), validation = expected("val loss ");
  ASSERT_EQ(losses.size(), 41u);
  ASSERT_EQ(r.losses.size(), 41u);
  for (std::size_t t = 0; t < losses.size(); ++t) EXPECT_NEAR(r.losses[t][0], losses[t], loss_bound * losses[t]) << "step " << t;
  std::vector<double> found;
  for (const std::string& line : r.metrics)
    if (line.find("\"kind\":\"eval\"") != std::string::npos) found.push_back(json_number(line, "val_loss"));
  ASSERT_GE(found.size(), validation.size());
  for (std::size_t i = 0; i < validation.size(); ++i)
    EXPECT_NEAR(found[i], validation[i], loss_bound * validation[i]) << "evaluation " << i;
}

TEST(Bf16, TwoRunsAreEqualBitForBit) {
  expect_same_bits(run_local(bf16(10, 2)), run_local(bf16(10, 2)));
}

TEST(Bf16, TwoRanksDdpAreNearOneRankWithTwiceTheMicroSteps) {
  LocalSettings one = bf16(20), two = bf16(20, 2);
  one.micro_batch = two.micro_batch = 2;
  const LocalResult a = run_local(one), b = run_local(two);
  expect_near(a, b);
  EXPECT_EQ(b.weight_hashes[0], b.weight_hashes[1]);
}

TEST(Bf16, SequenceDegreeTwoIsNearDegreeOne) {
  const LocalResult a = run_local(bf16(20)), b = run_local(with_autosp(bf16(20), 2));
  expect_near(a, b);
  EXPECT_EQ(b.weight_hashes[0], b.weight_hashes[1]);
}

TEST(Bf16, FakeDevicesGiveTheBitsOfTheCpu) {
  LocalSettings cpu = with_autosp(with_desloc(bf16(6, 2)), 2), fake = cpu;
  fake.fake_device = true;
  expect_same_bits(run_local(cpu), run_local(fake));
}

class Bf16Resume : public testing::TestWithParam<std::pair<const char*, LocalSettings (*)()>> {};

TEST_P(Bf16Resume, TwentyAndTwentyAreForty) {
  LocalSettings s = GetParam().second();
  s.shuffle = true;
  s.train.schedule.kind = ScheduleKind::cosine;
  s.train.schedule.steps = 40;
  expect_resume_is_whole(s, 20);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Bf16Resume,
                         testing::Values(std::pair(
                                             "ddp", +[] { return bf16(40, 2); }),
                                         std::pair(
                                             "desloc", +[] { return with_desloc(bf16(40, 2)); }),
                                         std::pair(
                                             "autosp", +[] { return with_autosp(bf16(40), 2); })),
                         [](const auto& info) { return std::string(info.param.first); });

// A checkpoint holds the fp32 weights in either dtype, so a run may change it: the master starts from their bits.
class ChangedDtype : public testing::TestWithParam<DType> {};

TEST_P(ChangedDtype, GoesOnFromTheSameFp32Weights) {
  LocalSettings s = with_autosp(bf16(10), 2);
  s.dtype = GetParam();
  MemoryStore store;
  s.store = &store;
  run_local(s);
  s.resume = true;
  s.train.steps = 12;
  s.dtype = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  s.before = [&](TrainParts& parts) {
    const std::unique_ptr<CheckpointReader> reader = store.open(10);
    for (const Range& own : parts.owned())
      for (const ParamPiece& piece : parts.model.table().pieces(own)) {
        const TensorView view = parts.arena.view(parts.master, piece.range);
        ASSERT_EQ(view.dtype(), DType::f32);
        Buffer host(parts.device, view.bytes(), MemoryKind::pinned, "master for a test");
        parts.stream.copy(host.data(), view.data(), view.bytes());
        parts.wait.wait(*record_event(parts.device, parts.stream, "master"));
        std::vector<float> stored(static_cast<std::size_t>(view.elements()));
        const std::string name = "/model/" + parts.model.table().param(piece.param).name;
        reader->get(name, DType::f32, piece.offset_in_param, view.elements(), stored.data());
        EXPECT_EQ(0, std::memcmp(stored.data(), host.data(), stored.size() * sizeof(float))) << name;
      }
  };
  const LocalResult changed = run_local(s);
  MemoryStore other;
  s.dtype = GetParam();
  s.store = &other;
  s.before = {};
  s.resume = false;
  const LocalResult straight = run_local(s);
  for (const std::size_t t : {std::size_t{10}, std::size_t{11}})
    EXPECT_NEAR(changed.losses[t][0], straight.losses[t][0], loss_bound * straight.losses[t][0]) << "step " << t;
}

INSTANTIATE_TEST_SUITE_P(From, ChangedDtype, testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return name_of(info.param); });

// Gradients travel in fp32; weights and what attention exchanges in bf16.
TEST(Bf16, ReplicaBytesFollowTheDtype) {
  const LocalSettings s = with_autosp(bf16(3), 2);
  const LocalResult r = run_local(s);
  const double n = static_cast<double>(Transformer(s.spec.completed()).table().total());
  const double tokens = static_cast<double>(s.global_batch * s.context), width = static_cast<double>(s.spec.hidden);
  const double activations = tokens * static_cast<double>(s.spec.layers) * 8 * width * 2 / 2;  // q k v out, both ways; half of them move
  for (const std::string& line : r.metrics)
    if (line.find("\"kind\":\"step\"") != std::string::npos) {
      EXPECT_EQ(json_number(line, "replica_bytes"), n * (4 + 2) + activations);
    }
}

}  // namespace
}  // namespace nsp::test
