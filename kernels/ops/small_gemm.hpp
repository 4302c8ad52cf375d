// Products of blocks that stay in cache, for attention: C[M,N] (+)= A[M,K] B[K,N]. A is read element by element with two
// free strides (so it may be transposed), B and C have dense rows. Vector types keep the accumulators in registers, which
// the compiler does not manage by itself for such loops.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/element.hpp"

namespace nsp::cpu {

namespace small_gemm_detail {

#if defined(__AVX512F__)
constexpr int kWidth = 16, kColumns = 4;  // 32 registers
#elif defined(__AVX__)
constexpr int kWidth = 8, kColumns = 2;  // 16 registers
#else
constexpr int kWidth = 4, kColumns = 2;
#endif
constexpr int kRows = 6;
typedef float Lanes __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));

struct Operand {
  const float* data;
  int64_t row_stride, column_stride;
};

template <int R, int V>
inline void block(int64_t k, Operand a, const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  Lanes sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) sum[r][v] = accumulate ? *reinterpret_cast<const Lanes*>(c + r * ldc + v * kWidth) : Lanes{};
  }
  for (int64_t i = 0; i < k; ++i) {
    Lanes row[V];
    for (int v = 0; v < V; ++v) row[v] = *reinterpret_cast<const Lanes*>(b + i * ldb + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const float factor = a.data[r * a.row_stride + i * a.column_stride];
      for (int v = 0; v < V; ++v) sum[r][v] += factor * row[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) *reinterpret_cast<Lanes*>(c + r * ldc + v * kWidth) = sum[r][v];
  }
}

// R rows of C over all columns.
template <int R>
inline void panel(int64_t n, int64_t k, Operand a, const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  int64_t j = 0;
  for (; j + kColumns * kWidth <= n; j += kColumns * kWidth) block<R, kColumns>(k, a, b + j, ldb, c + j, ldc, accumulate);
  for (; j + kWidth <= n; j += kWidth) block<R, 1>(k, a, b + j, ldb, c + j, ldc, accumulate);
  for (; j < n; ++j) {
    for (int r = 0; r < R; ++r) {
      float sum = accumulate ? c[r * ldc + j] : 0.0f;
      for (int64_t i = 0; i < k; ++i) sum += a.data[r * a.row_stride + i * a.column_stride] * b[i * ldb + j];
      c[r * ldc + j] = sum;
    }
  }
}

}  // namespace small_gemm_detail

using SmallGemmOperand = small_gemm_detail::Operand;

inline void small_gemm(int64_t m, int64_t n, int64_t k, SmallGemmOperand a, const float* b, int64_t ldb, float* c, int64_t ldc,
                       bool accumulate) {
  using namespace small_gemm_detail;
  for (; m >= kRows; m -= kRows) {
    panel<kRows>(n, k, a, b, ldb, c, ldc, accumulate);
    a.data += kRows * a.row_stride;
    c += kRows * ldc;
  }
  switch (m) {
    case 5:
      return panel<5>(n, k, a, b, ldb, c, ldc, accumulate);
    case 4:
      return panel<4>(n, k, a, b, ldb, c, ldc, accumulate);
    case 3:
      return panel<3>(n, k, a, b, ldb, c, ldc, accumulate);
    case 2:
      return panel<2>(n, k, a, b, ldb, c, ldc, accumulate);
    case 1:
      return panel<1>(n, k, a, b, ldb, c, ldc, accumulate);
    default:
      return;
  }
}

// to[column][row] = from[row][column] in fp32; rows beyond `rows` up to `padded` become 0.
template <class T>
inline void transpose_block(const T* from, int64_t stride, int64_t rows, int64_t columns, float* to, int64_t padded) {
  constexpr int64_t kSide = 8;
  for (int64_t i = 0; i < rows; i += kSide) {
    const int64_t height = rows - i < kSide ? rows - i : kSide;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t r = 0; r < height; ++r) to[j * padded + i + r] = widen(from[(i + r) * stride + j]);
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t r = rows; r < padded; ++r) to[j * padded + r] = 0.0f;
  }
}

}  // namespace nsp::cpu
