// What both directions of attention share. Every query sees one contiguous range of keys, whatever mixture of causality,
// window and document start is asked for; so masks are ranges, and blocks of keys that nobody sees are skipped.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nsp/backend.h"

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
