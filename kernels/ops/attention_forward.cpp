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

struct Forward {
  HeadRows<float> out;
  HeadRows<const float> q, k, v;
  nsp_tensor lse;
  AttentionMask mask;
  int64_t queries, group, size;
  float scale;

  // Running maximum and sum per query, transposed keys, scores.
  int64_t scratch_floats() const { return 2 * queries + size * kKeyBlock + kQueryBlock * kKeyBlock; }

  void head(int64_t b, int64_t h, float* scratch) const {
    float *maximum = scratch, *sum = maximum + queries, *keys = sum + queries, *scores = keys + size * kKeyBlock;
    for (int64_t t = 0; t < queries; ++t) {
      std::fill_n(out.at(b, t, h), size, 0.0f);
      maximum[t] = kMinusInfinity;
      sum[t] = 0.0f;
    }
    for (int64_t key = 0; key < mask.keys; key += kKeyBlock) {
      const int64_t width = std::min(kKeyBlock, mask.keys - key);
      bool transposed = false;
      for (int64_t t = 0; t < queries; t += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, queries - t);
        const BlockRanges ranges(mask, b, t, rows);
        const int64_t lo = std::max(ranges.hull.lo - key, int64_t{0}), hi = std::min(ranges.hull.hi - key, width);
        if (hi <= lo) continue;
        if (!transposed) transpose_block(k.at(b, key, h / group), k.row, width, size, keys, kKeyBlock);
        transposed = true;
        small_gemm(rows, kKeyBlock, size, {q.at(b, t, h), q.row, 1}, keys, kKeyBlock, scores, kKeyBlock, false);
        for (int64_t r = 0; r < rows; ++r) {
          softmax_row(scores + r * kKeyBlock, ranges.within(r, key, width), width, scale, maximum[t + r], sum[t + r], out.at(b, t + r, h),
                      size);
        }
        // Only keys that some row sees: what lies beyond may never have been written.
        small_gemm(rows, size, hi - lo, {scores + lo, kKeyBlock, 1}, v.at(b, key + lo, h / group), v.row, out.at(b, t, h), out.row, true);
      }
    }
    float* logs = static_cast<float*>(lse.data) + b * lse.stride[0] + h * lse.stride[1];
    for (int64_t t = 0; t < queries; ++t) {
      if (maximum[t] == kMinusInfinity) {  // sees no key
        logs[t] = kMinusInfinity;
        continue;
      }
      const float inverse = 1.0f / sum[t];
      float* row = out.at(b, t, h);
#pragma omp simd
      for (int64_t d = 0; d < size; ++d) row[d] *= inverse;
      logs[t] = maximum[t] + std::log(sum[t]);
    }
  }
};

}  // namespace

void attention_forward(Context& context, const nsp_attention_forward_args& a) {
  const int64_t batch = a.q.size[0], heads = a.q.size[2];
  if (batch == 0 || heads == 0) return;
  const Forward forward{HeadRows<float>(a.out),
                        HeadRows<const float>(a.q),
                        HeadRows<const float>(a.k),
                        HeadRows<const float>(a.v),
                        a.lse,
                        AttentionMask(a),
                        a.q.size[1],
                        heads / a.k.size[2],
                        a.q.size[3],
                        a.scale};
  parallel_tasks(context, "nsp attention", batch * heads, forward.scratch_floats(),
                 [&](int64_t task, float* scratch) { forward.head(task / heads, task % heads, scratch); });
}

}  // namespace nsp::cpu::kernels
