// The states of a bf16 job: what each rank holds, and how the fp32 master reaches the weights that forward reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/tensor/core_states.hpp"
#include "nsp/bf16.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

// A model without padding rows, so that sizes are exactly those of its parameters.
LocalSettings unpadded(int replicas, int degree) {
  LocalSettings s = tiny_settings();
  s.weights = {};
  s.spec.vocab = 512;
  s.dtype = DType::bf16;
  s.ranks = replicas;
  s.train.steps = 0;
  return with_autosp(s, degree);
}

int64_t bytes_of(const MemoryTable& table, const std::string& what) {
  int64_t bytes = 0;
  for (const MemoryLine& line : table.lines)
    if (line.what == what) bytes += line.bytes;
  return bytes;
}

// Owned elements of the one of two ranks that owns more.
int64_t owned_of_half(const ModelSpec& spec) {
  const Transformer model(spec.completed());
  int64_t first = 0;
  for (const Segment& segment : model.table().segments()) first += owner_cuts(segment.size, 2)[1];
  return std::max(first, model.table().total() - first);
}

TEST(Bf16Memory, IsTwoFourFourAndEightBytesAParameterOnOneRank) {
  const LocalSettings s = unpadded(1, 1);
  const int64_t n = Transformer(s.spec.completed()).table().total();
  const MemoryTable memory = run_local(s).planned.kinds.front().memory;
  EXPECT_EQ(bytes_of(memory, "weights.bf16"), 2 * n);
  EXPECT_EQ(bytes_of(memory, "gradients"), 4 * n);
  EXPECT_EQ(bytes_of(memory, "weights"), 4 * n);
  EXPECT_EQ(bytes_of(memory, "adamw.m") + bytes_of(memory, "adamw.v"), 8 * n);
}

TEST(Bf16Memory, MasterAndMomentsAreSharedInAReplica) {
  const LocalSettings s = unpadded(1, 2);
  const int64_t n = Transformer(s.spec.completed()).table().total(), own = owned_of_half(s.spec);
  ASSERT_LT(own, n * 6 / 10);
  const MemoryTable memory = run_local(s).planned.kinds.front().memory;
  EXPECT_EQ(bytes_of(memory, "weights.bf16"), 2 * n);
  EXPECT_EQ(bytes_of(memory, "gradients"), 4 * n);
  EXPECT_EQ(bytes_of(memory, "weights"), 4 * own);
  EXPECT_EQ(bytes_of(memory, "adamw.m") + bytes_of(memory, "adamw.v"), 8 * own);
}

TEST(Bf16Memory, Fp32HasNoMaster) {
  LocalSettings s = unpadded(1, 1);
  s.dtype = DType::f32;
  const int64_t n = Transformer(s.spec.completed()).table().total();
  const MemoryTable memory = run_local(s).planned.kinds.front().memory;
  EXPECT_EQ(bytes_of(memory, "weights"), 4 * n);
  EXPECT_EQ(bytes_of(memory, "weights.bf16"), 0);
}

struct Layout {
  int replicas, degree;
  bool fake;
};
class Bf16Weights : public testing::TestWithParam<Layout> {};

// What forward reads, on every rank, is the master rounded to the nearest.
TEST_P(Bf16Weights, AreTheRoundedMasterOnEveryRank) {
  LocalSettings s = unpadded(GetParam().replicas, GetParam().degree);
  s.fake_device = GetParam().fake;
  const auto wanted = [](const Param& param, int64_t element) {  // most of these are no bf16 numbers; some are ties
    const uint32_t bits = 0x3f800000u + 0x1234u * static_cast<uint32_t>(element) + 0x777u * static_cast<uint32_t>(param.name.size());
    return std::bit_cast<float>(element % 5 == 0 ? (bits & 0x3fff0000u) | 0x8000u : bits & 0x3fffffffu);
  };
  s.weights = [&](const Param& param, int64_t offset, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = wanted(param, offset + i);
  };
  s.before = [&](TrainParts& parts) {
    ASSERT_NE(parts.master, weights_state);
    for (const Param& param : parts.model.table().params()) {
      const TensorView view = parts.arena.view(weights_state, {param.segment, param.offset, param.offset + param.elements()});
      ASSERT_EQ(view.dtype(), DType::bf16);
      Buffer host(parts.device, view.bytes(), MemoryKind::pinned, "weights for a test");
      parts.stream.copy(host.data(), view.data(), view.bytes());
      parts.wait.wait(*record_event(parts.device, parts.stream, "weights"));
      for (int64_t i = 0; i < param.elements(); ++i)
        ASSERT_EQ(static_cast<const uint16_t*>(host.data())[i], to_bf16(wanted(param, i))) << param.name << " " << i;
    }
  };
  run_local(s);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Bf16Weights,
                         testing::Values(Layout{1, 1, false}, Layout{2, 1, true}, Layout{1, 3, false}, Layout{1, 2, true}));

TEST(Bf16Numbers, RoundToTheNearestAndKeepNaN) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie goes to the even neighbour
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);  // the largest float is nearer to infinity
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f800001u)) & 0x7fc0, 0x7fc0);
  EXPECT_EQ(std::bit_cast<uint32_t>(from_bf16(0xc049)), 0xc0490000u);
}

// A bit of a master that no bf16 weight shows: the comparison of weights over the ranks finds it all the same.
TEST(Bf16Weights, ADamagedMasterIsFound) {
  LocalSettings s = unpadded(2, 1);
  s.train.steps = 3;
  s.train.verify_every = 1;
  run_local(s);  // nothing is wrong so far
  s.on_step = [](TrainParts& parts, int64_t t) {
    if (parts.rank != 1 || t != 1) return;
    Range one = parts.owned().back();
    one.hi = one.lo + 1;
    auto* bits = static_cast<uint32_t*>(parts.arena.view(parts.master, one).data());
    *bits ^= 1;
  };
  try {
    run_local(s);
    FAIL() << "the run went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::inconsistent) << e.what();
    EXPECT_NE(std::string(e.what()).find("at step 2"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace nsp::test
