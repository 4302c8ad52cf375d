#include "comm/sum_ranks.hpp"

#include <algorithm>

// out may be one of the inputs at the same index; without the hint the compiler falls back to scalar code in just that case.
#if defined(__clang__)
#define NSP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define NSP_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace nsp {
namespace {

template <class T>
void sum_typed(const void* const* inputs, int ranks, void* output, int64_t n) {
  const auto x = [&](int k) { return static_cast<const T*>(inputs[k]); };
  T* out = static_cast<T*>(output);
  const T *a = x(0), *b = x(1);
  if (ranks == 2) {
    NSP_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
    return;
  }
  if (ranks == 4) {
    const T *c = x(2), *d = x(3);
    NSP_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = ((a[i] + b[i]) + c[i]) + d[i];
    return;
  }
  // Partial sums live in a tile that stays in the first cache, so that every input is read once and out is written once.
  constexpr int64_t kTile = 1024;
  T tile[kTile];
  for (int64_t lo = 0; lo < n; lo += kTile) {
    const int64_t m = std::min(kTile, n - lo);
    for (int64_t i = 0; i < m; ++i) tile[i] = a[lo + i] + b[lo + i];
    for (int k = 2; k < ranks; ++k) {
      const T* next = x(k) + lo;
      for (int64_t i = 0; i < m; ++i) tile[i] += next[i];
    }
    std::copy(tile, tile + m, out + lo);
  }
}

}  // namespace

bool summable(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}

void sum_ranks(DType dtype, const void* const* x, int ranks, void* out, int64_t n) {
  NSP_REQUIRE(ranks >= 2 && summable(dtype), "a sum has at least two summands of a dtype that can be summed");
  // Integers as unsigned: their overflow is defined and has the same bits.
  switch (dtype) {
    case DType::f32:
      return sum_typed<float>(x, ranks, out, n);
    case DType::f64:
      return sum_typed<double>(x, ranks, out, n);
    case DType::i32:
      return sum_typed<uint32_t>(x, ranks, out, n);
    case DType::i64:
      return sum_typed<uint64_t>(x, ranks, out, n);
    default:
      return;
  }
}

}  // namespace nsp
