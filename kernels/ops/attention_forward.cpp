// Attention forward: online softmax over blocks of keys (Dao et al., arXiv 2205.14135, algorithm 1), one batch entry and
// head per task. Working memory per worker: one transposed key block, one block of scores, two numbers per query.
#include <cmath>
#include <limits>

#include "ops/attention.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/small_gemm.hpp"
#include "ops/vector_math.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Turns one row of scores into probabilities relative to the running maximum; rescales what was gathered before.
// Kept out of line: inside a parallel region the compiler keeps the maximum and the sum in memory.
[[gnu::noinline]] void softmax_row(float* scores, KeyRange seen, int64_t width, float scale, float& maximum, float& sum, float* out,
                                   int64_t size) {
  if (seen.hi <= seen.lo) {
    std::fill(scores, scores + width, 0.0f);
    return;
  }
  float largest = kMinusInfinity;
#pragma omp simd reduction(max : largest)
  for (int64_t j = seen.lo; j < seen.hi; ++j) largest = scores[j] > largest ? scores[j] : largest;
  // A row of NaN has no maximum; 0 keeps the NaN, where minus infinity would too, but infinity minus itself must not arise.
  const float shift = std::max(maximum, largest == kMinusInfinity ? 0.0f : largest * scale);
  if (maximum != kMinusInfinity && shift != maximum) {
    const float factor = fast_exp(maximum - shift);
    sum *= factor;
#pragma omp simd
    for (int64_t d = 0; d < size; ++d) out[d] *= factor;
  }
  maximum = shift;
  float block_sum = 0.0f;
  std::fill(scores, scores + seen.lo, 0.0f);
#pragma omp simd reduction(+ : block_sum)
  for (int64_t j = seen.lo; j < seen.hi; ++j) {
    const float p = fast_exp(scores[j] * scale - shift);
    scores[j] = p;
    block_sum += p;
  }
  std::fill(scores + seen.hi, scores + width, 0.0f);
  sum += block_sum;
}

template <class T>
struct Forward {
  HeadRows<T> out;
  HeadRows<const T> q, k, v;
  nsp_tensor lse;
  AttentionMask mask;
  int64_t queries, group, size;
  float scale;

  // Running maximum and sum per query, transposed keys, scores; fp32 copies of a block of queries and of values, sums.
  int64_t scratch_floats() const {
    return 2 * queries + size * kKeyBlock + kQueryBlock * kKeyBlock + if_widened<T>((kQueryBlock + kKeyBlock + queries) * size);
  }

  void head(int64_t b, int64_t h, float* scratch) const {
    float *maximum = scratch, *sum = maximum + queries, *keys = sum + queries, *scores = keys + size * kKeyBlock;
    float *query_work = scores + kQueryBlock * kKeyBlock, *value_work = query_work + if_widened<T>(kQueryBlock * size);
    const SumRows sums = sum_rows(out.at(b, 0, h), out.row, queries, size, value_work + if_widened<T>(kKeyBlock * size));
    std::fill_n(maximum, queries, kMinusInfinity);
    std::fill_n(sum, queries, 0.0f);
    for (int64_t key = 0; key < mask.keys; key += kKeyBlock) {
      const int64_t width = std::min(kKeyBlock, mask.keys - key);
      bool loaded = false;
      SourceRows values{};
      for (int64_t t = 0; t < queries; t += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, queries - t);
        const BlockRanges ranges(mask, b, t, rows);
        const int64_t lo = std::max(ranges.hull.lo - key, int64_t{0}), hi = std::min(ranges.hull.hi - key, width);
        if (hi <= lo) continue;
        if (!loaded) {
          transpose_block(k.at(b, key, h / group), k.row, width, size, keys, kKeyBlock);
          values = source_rows(v.at(b, key, h / group), v.row, width, size, value_work);
          loaded = true;
        }
        const SourceRows query = source_rows(q.at(b, t, h), q.row, rows, size, query_work);
        small_gemm(rows, kKeyBlock, size, {query.data, query.stride, 1}, keys, kKeyBlock, scores, kKeyBlock, false);
        for (int64_t r = 0; r < rows; ++r) {
          softmax_row(scores + r * kKeyBlock, ranges.within(r, key, width), width, scale, maximum[t + r], sum[t + r], sums.row(t + r),
                      size);
        }
        // Only keys that some row sees: what lies beyond may never have been written.
        small_gemm(rows, size, hi - lo, {scores + lo, kKeyBlock, 1}, values.data + lo * values.stride, values.stride, sums.row(t),
                   sums.stride, true);
      }
    }
    float* logs = static_cast<float*>(lse.data) + b * lse.stride[0] + h * lse.stride[1];
    for (int64_t t = 0; t < queries; ++t) {
      const bool sees_a_key = maximum[t] != kMinusInfinity;
      const float inverse = sees_a_key ? 1.0f / sum[t] : 0.0f;
      const float* from = sums.row(t);
      T* row = out.at(b, t, h);
#pragma omp simd
      for (int64_t d = 0; d < size; ++d) row[d] = narrow<T>(from[d] * inverse);
      logs[t] = sees_a_key ? maximum[t] + std::log(sum[t]) : kMinusInfinity;
    }
  }
};

template <class T>
void forward_all(Context& context, const nsp_attention_forward_args& a) {
  const int64_t batch = a.q.size[0], heads = a.q.size[2];
  if (batch == 0 || heads == 0) return;
  const Forward<T> forward{HeadRows<T>(a.out),
                           HeadRows<const T>(a.q),
                           HeadRows<const T>(a.k),
                           HeadRows<const T>(a.v),
                           a.lse,
                           AttentionMask(a),
                           a.q.size[1],
                           heads / a.k.size[2],
                           a.q.size[3],
                           a.scale};
  parallel_tasks(context, "nsp attention", batch * heads, forward.scratch_floats(),
                 [&](int64_t task, float* scratch) { forward.head(task / heads, task % heads, scratch); });
}

}  // namespace

void attention_forward(Context& context, const nsp_attention_forward_args& a) {
  with_element(a.q.dtype, [&](auto element) { forward_all<decltype(element)>(context, a); });
}

}  // namespace nsp::cpu::kernels
