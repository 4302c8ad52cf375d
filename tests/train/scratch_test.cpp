// The working memory of kernels keeps what one op needs, not the sum of what ever larger ones needed.
#include "cpu/scratch.hpp"

#include <gtest/gtest.h>

#include "tests/train/counted_blocks.hpp"

namespace nsp::test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(Scratch, KeepsTheMostOfOneOp) {
  if (!counts_blocks()) GTEST_SKIP() << "a sanitizer stands before the functions that are counted";
  cpu::Scratch scratch;
  for (std::size_t n = 1; n <= 16; ++n) {
    scratch.reset();
    scratch.take(n * mib);
  }
  EXPECT_EQ(most_block_bytes(), static_cast<int64_t>(16 * mib));
  // An op that takes two parts finds both in one block the next time.
  for (int i = 0; i < 3; ++i) {
    scratch.reset();
    auto* first = static_cast<char*>(scratch.take(12 * mib));
    auto* second = static_cast<char*>(scratch.take(8 * mib));
    first[0] = second[0] = 1;
    if (i > 0) {
      EXPECT_EQ(second - first, static_cast<std::ptrdiff_t>(12 * mib));
    }
  }
  EXPECT_EQ(most_block_bytes(), static_cast<int64_t>(24 * mib));
}

}  // namespace
}  // namespace nsp::test
