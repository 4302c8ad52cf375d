#include "nsp/xxhash64.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nsp {
namespace {

uint64_t of(const std::string& text) {
  return xxhash64(text.data(), text.size());
}

TEST(XxHash64, PublishedVectors) {
  EXPECT_EQ(of(""), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(of("a"), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(of("as"), 0x1C330FB2D66BE179ULL);
  EXPECT_EQ(of("asd"), 0x631C37CE72A97393ULL);
  EXPECT_EQ(of("asdf"), 0x415872F599CEA71EULL);
  EXPECT_EQ(of("abc"), 0x44BC2CF5AD770999ULL);
  EXPECT_EQ(of("Call me Ishmael. Some years ago--never mind how long precisely-"), 0x02A2E85470D6FD96ULL);  // 63 bytes: all branches
  EXPECT_EQ(of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1ULL);
}

TEST(XxHash64, PublishedVectorsWithASeed) {
  constexpr uint64_t seed = 2654435761U;
  const unsigned char one[] = {0};
  EXPECT_EQ(xxhash64(nullptr, 0, seed), 0xAC75FDA2929B17EFULL);
  EXPECT_EQ(xxhash64(one, 1), 0xE934A84ADB052768ULL);
  EXPECT_EQ(xxhash64(one, 1, seed), 0x5014607643A9B4C3ULL);
}

TEST(XxHash64, BlocksGiveTheSumOfTheWhole) {
  std::vector<unsigned char> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 131 + 7);
  for (std::size_t length : {0u, 1u, 31u, 32u, 33u, 64u, 100u, 1000u}) {
    const uint64_t whole = xxhash64(data.data(), length);
    for (std::size_t block : {1u, 3u, 8u, 31u, 32u, 33u, 500u}) {
      XxHash64 hash;
      for (std::size_t at = 0; at < length; at += block) hash.add(data.data() + at, std::min(block, length - at));
      EXPECT_EQ(hash.value(), whole) << length << " in blocks of " << block;
    }
  }
}

TEST(XxHash64, EveryBitCounts) {
  std::vector<unsigned char> data(77, 5);
  const uint64_t before = xxhash64(data.data(), data.size());
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    EXPECT_NE(xxhash64(data.data(), data.size()), before) << bit;
    data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
  }
}

}  // namespace
}  // namespace nsp
