// The innermost product: a few rows of C times a few vector registers of columns, from packed panels (ops/gemm_panels.hpp).
#pragma once

#include <cstdint>

#include "ops/gemm_panels.hpp"

namespace nsp::cpu {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kPanelRows = 8, kPanelRegisters = 3;  // 24 sums, 3 of B and one of A in 32 registers
#else
constexpr int kLanes = 8, kPanelRows = 6, kPanelRegisters = 2;  // 12 sums, 2 of B and one of A in 16 registers
#endif
constexpr int kPanelColumns = kLanes * kPanelRegisters;

#if defined(__AVX512BF16__)
constexpr bool kMultipliesPairs = true;
#else
constexpr bool kMultipliesPairs = false;
#endif

typedef float LaneVector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

namespace kernel_detail {

// Anywhere in memory: the vector type itself is declared with the alignment of a float.
inline LaneVector load(const float* from) {
  return *reinterpret_cast<const LaneVector*>(from);
}
inline void store(float* to, const LaneVector& lanes) {
  *reinterpret_cast<LaneVector*>(to) = lanes;
}

template <Lane L>
inline LaneVector multiply_add(LaneVector sum, float a, LaneVector b) {
  if constexpr (L == Lane::single) {
    return sum + a * b;
  } else {
#if defined(__AVX512BF16__)
    return reinterpret_cast<LaneVector>(
        _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(_mm512_set1_ps(a)), reinterpret_cast<__m512bh>(b)));
#else
    static_assert(L == Lane::single, "needs AVX512_BF16");
#endif
  }
}

// How much of a tile of C exists, and what its sums are added to: nothing, what stands there, or a bias of each column.
struct Target {
  float* c;
  int64_t stride;
  const float* bias;  // or null
  bool add;
};

template <Lane L, int R, int V>
void tile(int64_t steps, const float* a, const float* b, int64_t columns, const Target& to) {
  LaneVector sum[R][V] = {};
  // Fewer instructions per product: hyper-threads share the decoder.
#pragma GCC unroll 4
  for (int64_t step = 0; step < steps; ++step) {
    LaneVector row[V];
    for (int v = 0; v < V; ++v) row[v] = load(b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sum[r][v] = multiply_add<L>(sum[r][v], a[r], row[v]);
    }
    a += kPanelRows;
    b += kPanelColumns;
  }
  if (columns == V * kLanes) {
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) {
        float* c = to.c + r * to.stride + v * kLanes;
        if (to.add) sum[r][v] += load(c);
        if (to.bias != nullptr) sum[r][v] += load(to.bias + v * kLanes);
        store(c, sum[r][v]);
      }
    }
    return;
  }
  for (int r = 0; r < R; ++r) {
    float row[V * kLanes];
    for (int v = 0; v < V; ++v) store(row + v * kLanes, sum[r][v]);
    float* c = to.c + r * to.stride;
    for (int64_t j = 0; j < columns; ++j) {
      if (to.add) row[j] += c[j];
      if (to.bias != nullptr) row[j] += to.bias[j];
      c[j] = row[j];
    }
  }
}

template <Lane L, int R>
inline void tile_of_rows(int64_t steps, const float* a, const float* b, int64_t columns, const Target& to) {
  if constexpr (kPanelRegisters > 2) {
    if (columns > 2 * kLanes) return tile<L, R, kPanelRegisters>(steps, a, b, columns, to);
  }
  return columns > kLanes ? tile<L, R, 2>(steps, a, b, columns, to) : tile<L, R, 1>(steps, a, b, columns, to);
}

template <Lane L, int R = kPanelRows>
inline void tile_of(int64_t rows, int64_t steps, const float* a, const float* b, int64_t columns, const Target& to) {
  if constexpr (R > 1) {
    if (rows < R) return tile_of<L, R - 1>(rows, steps, a, b, columns, to);
  }
  tile_of_rows<L, R>(steps, a, b, columns, to);
}

}  // namespace kernel_detail

// C[rows, columns] = (C or 0) + A B + bias, from panels of A and B with `steps` steps. One order of additions for each
// element, wherever it lies in a tile.
template <Lane L>
void multiply_panels(int64_t rows, int64_t columns, int64_t steps, const float* a, const float* b, const kernel_detail::Target& to) {
  for (int64_t j = 0; j < columns; j += kPanelColumns) {
    const int64_t width = columns - j < kPanelColumns ? columns - j : kPanelColumns;
    for (int64_t i = 0; i < rows; i += kPanelRows) {
      kernel_detail::Target part = to;
      part.c += i * to.stride + j;
      if (to.bias != nullptr) part.bias += j;
      kernel_detail::tile_of<L>(rows - i < kPanelRows ? rows - i : kPanelRows, steps, a + i * steps, b + j * steps, width, part);
    }
  }
}

}  // namespace nsp::cpu
