#include "core/tensor/param_table.hpp"

#include <gtest/gtest.h>

#include "core/tensor/activations.hpp"

namespace nsp {
namespace {

ParamTable table() {
  ParamTable t;
  t.add_segment("embedding");
  t.add("wpe", {4, 8}, Role::embedding, {});
  t.add("wte", {5, 8}, Role::embedding, {}, 64);
  t.add_segment("head");
  t.add("w", {8}, Role::norm, {});
  return t;
}

TEST(ParamTable, PaddingShowsInStorageOnly) {
  const ParamTable t = table();
  EXPECT_EQ(t.segment(0).size, 72);
  EXPECT_EQ(t.segment(0).storage, 32 + 64 * 8);
  EXPECT_EQ(t.param(t.find("wte")).offset, 32);
  EXPECT_EQ(t.total(), 80);
  EXPECT_EQ(t.find("nothing"), -1);
}

TEST(ParamTable, ARangeIsCutAtTensorBorders) {
  const ParamTable t = table();
  const auto pieces = t.pieces({0, 30, 40});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].range, (Range{0, 30, 32}));
  EXPECT_EQ(pieces[0].offset_in_param, 30);
  EXPECT_EQ(pieces[1].range, (Range{0, 32, 40}));
  EXPECT_EQ(pieces[1].offset_in_param, 0);
  EXPECT_TRUE(t.pieces({1, 3, 3}).empty());
}

TEST(ParamTable, OnlyTheLastTensorMayBePadded) {
  ParamTable t;
  t.add_segment("s");
  t.add("a", {5, 2}, Role::matrix, {}, 8);
  EXPECT_THROW(t.add("b", {2}, Role::bias, {}), Error);
  EXPECT_THROW(t.add("a", {2}, Role::bias, {}), Error);
}

TEST(OwnerCuts, CoverTheSegmentAtMultiplesOf64) {
  for (const int64_t size : {0, 1, 63, 64, 65, 200, 4096, 100003})
    for (const int owners : {1, 2, 3, 8}) {
      const std::vector<int64_t> cuts = owner_cuts(size, owners);
      ASSERT_EQ(cuts.size(), static_cast<std::size_t>(owners) + 1);
      EXPECT_EQ(cuts.front(), 0);
      EXPECT_EQ(cuts.back(), size);
      for (int i = 0; i < owners; ++i) {
        EXPECT_LE(cuts[i], cuts[i + 1]);
        EXPECT_TRUE(cuts[i] % 64 == 0 || cuts[i] == size);
        EXPECT_LE(cuts[i + 1] - cuts[i], (size + 63) / 64 / owners * 64 + 64);
      }
    }
}

TEST(ActivationPlanner, CountsKeptAndTheHighWaterMarkOfScratch) {
  ActivationPlanner p;
  const Slot a = p.keep("a", DType::f32, 64), b = p.keep("b", DType::f32, 1);
  EXPECT_EQ(a.offset, 0);
  EXPECT_EQ(b.offset, 256);
  EXPECT_EQ(p.kept_bytes(), 512);
  p.begin_scratch("x", DType::f32, 64);
  p.begin_scratch("y", DType::f32, 64);
  p.end_scratch();
  p.end_scratch();
  p.begin_scratch("z", DType::f32, 65);
  p.end_scratch();
  EXPECT_EQ(p.scratch_bytes(), 512);
  ASSERT_EQ(p.scratch_at_high_water().size(), 2u);
  EXPECT_EQ(p.scratch_at_high_water()[1].name, "y");
  EXPECT_THROW(p.end_scratch(), Error);
}

}  // namespace
}  // namespace nsp
