#include "ops/column_sum.hpp"

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu {

void add_partial_sums(float* target, const float* partial, int64_t blocks, int64_t stride, int64_t columns) {
  constexpr int64_t kColumns = 64;
  parallel_items("nsp partial sums", (columns + kColumns - 1) / kColumns, blocks * kColumns, [=](int64_t part) {
    const int64_t lo = part * kColumns, width = std::min(kColumns, columns - lo);
    double sums[kColumns] = {};
    for (int64_t b = 0; b < blocks; ++b) {
      const float* row = partial + b * stride + lo;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) sums[c] += static_cast<double>(row[c]);
    }
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) target[lo + c] += static_cast<float>(sums[c]);
  });
}

namespace {

template <class T>
void sum_rows(Context& context, const nsp_bias_gradient_args& a) {
  const Matrix<const T> dout(a.dout);
  const int64_t columns = dout.columns;
  const RowBlocks blocks(dout.rows);
  float* partial = context.scratch.floats(static_cast<std::size_t>(blocks.count * columns));
  parallel_items("nsp bias gradient", blocks.count, blocks.per_block * columns, [=](int64_t block) {
    float* sums = partial + block * columns;
    std::fill(sums, sums + columns, 0.0f);
    const int64_t hi = std::min(dout.rows, (block + 1) * blocks.per_block);
    for (int64_t n = block * blocks.per_block; n < hi; ++n) {
      const T* row = dout.row(n);
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) sums[c] += widen(row[c]);
    }
  });
  add_partial_sums(static_cast<float*>(a.dbias.data), partial, blocks.count, columns, columns);
}

}  // namespace

void kernels::bias_gradient(Context& context, const nsp_bias_gradient_args& a) {
  with_element(a.dout.dtype, [&](auto element) { sum_rows<decltype(element)>(context, a); });
}

}  // namespace nsp::cpu
