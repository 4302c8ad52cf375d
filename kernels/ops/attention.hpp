// What both directions of attention share. Every query sees one contiguous range of keys, whatever mixture of causality,
// window and document start is asked for; so masks are ranges, and blocks of keys that nobody sees are skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "nsp/backend.h"
#include "ops/element.hpp"

namespace nsp::cpu {

constexpr int64_t kQueryBlock = 48, kKeyBlock = 64;  // query rows in six-row panels, keys in whole vector registers

struct KeyRange {
  int64_t lo, hi;  // empty if hi <= lo
};

struct AttentionMask {
  int64_t keys, query_offset, window;
  bool causal;
  const int32_t* document_start;  // or null
  int64_t document_stride;

  template <class Args>
  explicit AttentionMask(const Args& a)
      : keys(a.k.size[1]),
        query_offset(a.query_offset),
        window(a.window),
        causal(a.causal != 0),
        document_start(static_cast<const int32_t*>(a.document_start.rank > 0 ? a.document_start.data : nullptr)),
        document_stride(a.document_start.rank > 0 ? a.document_start.stride[0] : 0) {}

  KeyRange seen_by(int64_t b, int64_t t) const {
    const int64_t position = query_offset + t;
    KeyRange range{0, causal ? std::min(keys, position + 1) : keys};
    if (window > 0) range.lo = std::max(range.lo, position - window + 1);
    if (document_start != nullptr) range.lo = std::max<int64_t>(range.lo, document_start[b * document_stride + t]);
    return range;
  }
};

// A [B,T,H,D] tensor: rows of one batch entry and head.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, row, head;  // strides
  explicit HeadRows(const nsp_tensor& t) : data(static_cast<T*>(t.data)), batch(t.stride[0]), row(t.stride[1]), head(t.stride[2]) {}
  T* at(int64_t b, int64_t t, int64_t h) const { return data + b * batch + t * row + h * head; }
};

// Attention computes on rows of fp32. Those of an fp32 tensor are used where they lie; bf16 ones are widened into working
// memory, and sums are gathered there and rounded once when they are complete. `floats` of it are needed where kWidened<T>.
template <class T>
constexpr bool kWidened = !std::is_same_v<T, float>;

template <class T>
constexpr int64_t if_widened(int64_t floats) {
  return kWidened<T> ? floats : 0;
}

struct SourceRows {
  const float* data;
  int64_t stride;
};
inline SourceRows source_rows(const float* rows, int64_t stride, int64_t, int64_t, float*) {
  return {rows, stride};
}
inline SourceRows source_rows(const Bf16* rows, int64_t stride, int64_t count, int64_t size, float* work) {
  for (int64_t r = 0; r < count; ++r) {
#pragma omp simd
    for (int64_t d = 0; d < size; ++d) work[r * size + d] = widen(rows[r * stride + d]);
  }
  return {work, size};
}

struct SumRows {
  float* data;
  int64_t stride;
  float* row(int64_t r) const { return data + r * stride; }
};
// Starts at 0.
template <class T>
SumRows sum_rows(T* result, int64_t stride, int64_t count, int64_t size, float* work) {
  SumRows sums{work, size};
  if constexpr (!kWidened<T>) sums = {result, stride};
  for (int64_t r = 0; r < count; ++r) std::fill_n(sums.row(r), size, 0.0f);
  return sums;
}
// Complete: into the result, if they are not there already.
template <class T>
void store_rows(const SumRows& sums, T* result, int64_t stride, int64_t count, int64_t size) {
  if constexpr (kWidened<T>) {
    for (int64_t r = 0; r < count; ++r) {
      const float* from = sums.row(r);
#pragma omp simd
      for (int64_t d = 0; d < size; ++d) result[r * stride + d] = narrow<T>(from[d]);
    }
  }
}

// The ranges of a block of query rows, and their hull.
struct BlockRanges {
  KeyRange of[kQueryBlock];
  KeyRange hull{INT64_MAX, INT64_MIN};
  BlockRanges(const AttentionMask& mask, int64_t b, int64_t first, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      of[r] = mask.seen_by(b, first + r);
      if (of[r].hi <= of[r].lo) continue;
      hull.lo = std::min(hull.lo, of[r].lo);
      hull.hi = std::max(hull.hi, of[r].hi);
    }
  }
  // Columns of the key block at `key` that row r sees.
  KeyRange within(int64_t r, int64_t key, int64_t width) const {
    return {std::clamp<int64_t>(of[r].lo - key, 0, width), std::clamp<int64_t>(of[r].hi - key, 0, width)};
  }
};

}  // namespace nsp::cpu
