#include <gtest/gtest.h>

#include "io/boxes.hpp"
#include "io/piece_index.hpp"

namespace nsp {
namespace {

std::vector<PieceRecord> two_pieces() {
  return {{"/model/a", DType::f32, {4, 3}, 0, 7, 0, 0xFFFFFFFFFFFFFFFFULL}, {"/model/a", DType::f32, {4, 3}, 7, 5, 1, 12}};
}

TEST(Pieces, SurviveTheirBytes) {
  const std::vector<char> bytes = serialize(two_pieces());
  const std::vector<PieceRecord> back = deserialize_pieces(bytes.data(), bytes.size());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "/model/a");
  EXPECT_EQ(back[0].shape, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(back[0].checksum, 0xFFFFFFFFFFFFFFFFULL);
  EXPECT_EQ(back[1].offset, 7);
  EXPECT_EQ(back[1].count, 5);
  EXPECT_EQ(back[1].rank, 1);
  EXPECT_TRUE(deserialize_pieces(serialize({}).data(), serialize({}).size()).empty());
}

TEST(Pieces, DamagedBytesAreRefused) {
  const std::vector<char> bytes = serialize(two_pieces());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(deserialize_pieces(std::vector<char>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)).data(), length),
                 Error)
        << length;
  std::vector<char> longer = bytes;
  longer.push_back(0);
  EXPECT_THROW(deserialize_pieces(longer.data(), longer.size()), Error);
  for (std::size_t at = 0; at < bytes.size(); ++at) {  // any byte: an error or other values, never a crash
    std::vector<char> flipped = bytes;
    flipped[at] = static_cast<char>(~flipped[at]);
    try {
      deserialize_pieces(flipped.data(), flipped.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  }
}

TEST(PieceIndex, FindsOverlapsGapsAndDisagreement) {
  const auto index_of = [](std::vector<PieceRecord> pieces) { return PieceIndex(std::move(pieces), ErrorKind::inconsistent, "test"); };
  EXPECT_EQ(index_of(two_pieces()).first_gap(), "");
  auto overlap = two_pieces();
  overlap[0].count = 8;
  EXPECT_THROW(index_of(overlap), Error);
  auto outside = two_pieces();
  outside[1].count = 6;
  EXPECT_THROW(index_of(outside), Error);
  auto shapes = two_pieces();
  shapes[1].shape = {3, 4};
  EXPECT_THROW(index_of(shapes), Error);
  auto types = two_pieces();
  types[1].dtype = DType::i32;
  EXPECT_THROW(index_of(types), Error);
  auto gap = two_pieces();
  gap[0].count = 6;
  EXPECT_NE(index_of(gap).first_gap().find("from 6 of 12"), std::string::npos);
  auto huge = two_pieces();
  huge[0].shape = huge[1].shape = {INT64_MAX, INT64_MAX};
  EXPECT_THROW(index_of(huge), Error);
}

TEST(PieceIndex, NamesThatCannotBeStored) {
  for (const char* name :
       {"", "/", "model/a", "/model/", "/model//a", "/model/./a", "/../a", "/nsp/a", "/nsp", "/a%b", "/a b", "/\xc3\xa4"})
    EXPECT_THROW(require_storable(name, {4}, 0, 4), Error) << name;
  for (const char* name : {"/a", "/model/blocks.0.ln1.weight", "/nsp2/a", "/replica_0000/adamw.m/head"})
    EXPECT_NO_THROW(require_storable(name, {4}, 0, 4)) << name;
  EXPECT_THROW(require_storable("/a", {4}, 1, 4), Error);
  EXPECT_THROW(require_storable("/a", {4}, -1, 1), Error);
  EXPECT_THROW(require_storable("/a", {}, 0, 0), Error);
  EXPECT_THROW(require_storable("/a", {1, 1, 1, 1, 1, 1}, 0, 1), Error);
}

// Every run of elements of small tensors of one to four dimensions: the boxes hold exactly its elements, in order.
TEST(Boxes, HoldExactlyTheRun) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7}, {1, 5}, {4, 3}, {3, 1, 4}, {2, 3, 4}, {2, 3, 2, 3}}) {
    const int64_t n = elements_of(shape);
    for (int64_t lo = 0; lo <= n; ++lo) {
      for (int64_t hi = lo; hi <= n; ++hi) {
        const std::vector<Box> boxes = boxes_of(shape, lo, hi - lo);
        ASSERT_LE(boxes.size(), 2 * shape.size() - 1);
        int64_t next = lo;
        for (const Box& box : boxes) {
          int64_t inside = 1;
          for (int64_t count : box.count) inside *= count;
          ASSERT_EQ(inside, box.elements);
          for (int64_t i = 0; i < inside; ++i) {  // the i-th element of the box in row-major order
            int64_t rest = i, flat = 0, stride = 1;
            for (std::size_t d = shape.size(); d-- > 0;) {
              flat += (box.start[d] + rest % box.count[d]) * stride;
              rest /= box.count[d], stride *= shape[d];
            }
            ASSERT_EQ(flat, next++);
          }
        }
        ASSERT_EQ(next, hi);
      }
    }
  }
}

}  // namespace
}  // namespace nsp
