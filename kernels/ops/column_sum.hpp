// Sums over rows whose order depends on the number of rows alone: rows are cut into blocks, each block's sums are
// collected by one worker, and the blocks are added in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/executor.hpp"

namespace nsp::cpu {

struct RowBlocks {
  static constexpr int64_t kMost = 64;  // bounds the working memory at 64 rows of partial sums
  int64_t rows, per_block, count;
  explicit RowBlocks(int64_t n)
      : rows(n), per_block(std::max<int64_t>(16, (n + kMost - 1) / kMost)), count((n + per_block - 1) / per_block) {}
};

// target[c] += sum over blocks of partial[block * stride + c], in the order of the blocks, in double.
void add_partial_sums(float* target, const float* partial, int64_t blocks, int64_t stride, int64_t columns);

}  // namespace nsp::cpu
