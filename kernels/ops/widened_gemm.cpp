#include "ops/widened_gemm.hpp"

#include <algorithm>

namespace nsp::cpu {

namespace {

constexpr int64_t kSlice = 256;  // of k: two slices of the largest tile (1024) are 2 MiB

void widen_rows(const Bf16* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = widen(from[r * stride + c]);
  }
}

void multiply_slices(const Gemm& g, const Bf16* a, const Bf16* b, float* c, float* work) {
  Gemm slice = g;
  for (int64_t k = 0; k < g.k; k += kSlice) {
    slice.k = std::min(kSlice, g.k - k);
    float *wide_a = work, *wide_b = work + g.m * slice.k;
    if (g.transpose_a) {
      widen_rows(a + k * g.lda, g.lda, slice.k, g.m, wide_a);
    } else {
      widen_rows(a + k, g.lda, g.m, slice.k, wide_a);
    }
    if (g.transpose_b) {
      widen_rows(b + k, g.ldb, g.n, slice.k, wide_b);
    } else {
      widen_rows(b + k * g.ldb, g.ldb, slice.k, g.n, wide_b);
    }
    slice.lda = g.transpose_a ? g.m : slice.k;
    slice.ldb = g.transpose_b ? slice.k : g.n;
    cblas_tile(slice, wide_a, wide_b, c);
    slice.beta = 1.0f;
  }
}

}  // namespace

int64_t widened_gemm_floats(const Gemm& g) {
  return (g.m + g.n) * std::min(kSlice, g.k) + (g.bf16_result ? g.m * g.n : 0);
}

void widened_gemm(const Gemm& g, const Bf16* a, const Bf16* b, float* c, float* work) {
  multiply_slices(g, a, b, c, work);
}

void widened_gemm(const Gemm& g, const Bf16* a, const Bf16* b, Bf16* c, float* work) {
  Gemm wide = g;
  wide.ldc = g.n;
  if (g.beta != 0.0f) widen_rows(c, g.ldc, g.m, g.n, work);
  multiply_slices(wide, a, b, work, work + g.m * g.n);
  for (int64_t i = 0; i < g.m; ++i) {
#pragma omp simd
    for (int64_t j = 0; j < g.n; ++j) c[i * g.ldc + j] = narrow<Bf16>(work[i * g.n + j]);
  }
}

}  // namespace nsp::cpu
