#include "core/data/content_hash.hpp"

#include <gtest/gtest.h>

#include <string>

namespace nsp {
namespace {

// Values of the reference implementation (xxhsum -H1).
TEST(ContentHash, KnownValues) {
  EXPECT_EQ(content_hash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(content_hash("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(content_hash("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(content_hash("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
}

TEST(ContentHash, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37);
  const uint64_t whole = content_hash(text, 9);
  for (std::size_t piece = 1; piece < 80; ++piece) {
    XxHash64 hash(9);
    for (std::size_t at = 0; at < text.size(); at += piece) hash.add(text.data() + at, std::min(piece, text.size() - at));
    EXPECT_EQ(hash.value(), whole) << piece;
  }
  EXPECT_NE(content_hash(text, 10), whole);
}

TEST(ContentHash, TextHas16Digits) {
  EXPECT_EQ(hash_text(0xabc), "0000000000000abc");
}

}  // namespace
}  // namespace nsp
