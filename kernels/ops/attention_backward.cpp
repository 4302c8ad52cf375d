// Attention backward (Dao et al., arXiv 2205.14135, algorithm 4): probabilities are computed again from the kept
// log-sum-exp. One batch entry and key/value head per task, which owns dk, dv of that head and dq of its query heads, so
// nothing is added by two workers.
#include "ops/attention.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/small_gemm.hpp"
#include "ops/vector_math.hpp"

namespace nsp::cpu::kernels {

namespace {

// scores become probabilities, dp the gradient of the scores: p (dp - delta) scale.
void gradient_row(float* scores, float* dp, KeyRange seen, int64_t width, float scale, float lse, float delta) {
  std::fill(scores, scores + std::min(seen.lo, width), 0.0f);
  std::fill(dp, dp + std::min(seen.lo, width), 0.0f);
  const int64_t hi = std::max(seen.lo, seen.hi);
#pragma omp simd
  for (int64_t j = seen.lo; j < hi; ++j) {
    const float p = fast_exp(scores[j] * scale - lse);
    scores[j] = p;
    dp[j] = p * (dp[j] - delta) * scale;
  }
  std::fill(scores + hi, scores + width, 0.0f);
  std::fill(dp + hi, dp + width, 0.0f);
}

struct Backward {
  HeadRows<float> dq, dk, dv;
  HeadRows<const float> dout, q, k, v, out;
  nsp_tensor lse;
  AttentionMask mask;
  int64_t queries, group, size;
  float scale;

  // delta per query and head of the group, transposed keys and values, scores and their gradients.
  int64_t scratch_floats() const { return queries * group + 2 * size * kKeyBlock + 2 * kQueryBlock * kKeyBlock; }

  struct Work {
    float *delta, *keys, *values, *scores, *dp;
  };

  // One block of queries of head h against the key block at `key`.
  void block(int64_t b, int64_t h, int64_t t, int64_t rows, const BlockRanges& ranges, int64_t key, int64_t width, const Work& w) const {
    const int64_t g = h / group;
    const float* logs = static_cast<const float*>(lse.data) + b * lse.stride[0] + h * lse.stride[1];
    const float* delta = w.delta + (h % group) * queries;
    small_gemm(rows, kKeyBlock, size, {q.at(b, t, h), q.row, 1}, w.keys, kKeyBlock, w.scores, kKeyBlock, false);
    small_gemm(rows, kKeyBlock, size, {dout.at(b, t, h), dout.row, 1}, w.values, kKeyBlock, w.dp, kKeyBlock, false);
    for (int64_t r = 0; r < rows; ++r) {
      gradient_row(w.scores + r * kKeyBlock, w.dp + r * kKeyBlock, ranges.within(r, key, width), width, scale, logs[t + r], delta[t + r]);
    }
    const int64_t lo = std::max(ranges.hull.lo - key, int64_t{0}), hi = std::min(ranges.hull.hi - key, width);
    small_gemm(hi - lo, size, rows, {w.scores + lo, 1, kKeyBlock}, dout.at(b, t, h), dout.row, dv.at(b, key + lo, g), dv.row, true);
    small_gemm(hi - lo, size, rows, {w.dp + lo, 1, kKeyBlock}, q.at(b, t, h), q.row, dk.at(b, key + lo, g), dk.row, true);
    small_gemm(rows, size, hi - lo, {w.dp + lo, kKeyBlock, 1}, k.at(b, key + lo, g), k.row, dq.at(b, t, h), dq.row, true);
  }

  void start(int64_t b, int64_t g, float* delta) const {
    for (int64_t s = 0; s < mask.keys; ++s) {
      std::fill_n(dk.at(b, s, g), size, 0.0f);
      std::fill_n(dv.at(b, s, g), size, 0.0f);
    }
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      for (int64_t t = 0; t < queries; ++t) {
        std::fill_n(dq.at(b, t, h), size, 0.0f);
        const float *gradient = dout.at(b, t, h), *result = out.at(b, t, h);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t d = 0; d < size; ++d) sum += gradient[d] * result[d];
        delta[(h % group) * queries + t] = sum;
      }
    }
  }

  void key_head(int64_t b, int64_t g, float* scratch) const {
    Work w;
    w.delta = scratch;
    w.keys = w.delta + queries * group;
    w.values = w.keys + size * kKeyBlock;
    w.scores = w.values + size * kKeyBlock;
    w.dp = w.scores + kQueryBlock * kKeyBlock;
    start(b, g, w.delta);
    for (int64_t key = 0; key < mask.keys; key += kKeyBlock) {
      const int64_t width = std::min(kKeyBlock, mask.keys - key);
      transpose_block(k.at(b, key, g), k.row, width, size, w.keys, kKeyBlock);
      transpose_block(v.at(b, key, g), v.row, width, size, w.values, kKeyBlock);
      for (int64_t t = 0; t < queries; t += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, queries - t);
        const BlockRanges ranges(mask, b, t, rows);
        if (ranges.hull.hi <= key || ranges.hull.lo >= key + width) continue;
        for (int64_t h = g * group; h < (g + 1) * group; ++h) block(b, h, t, rows, ranges, key, width, w);
      }
    }
  }
};

}  // namespace

void attention_backward(Context& context, const nsp_attention_backward_args& a) {
  const int64_t batch = a.q.size[0], key_heads = a.k.size[2];
  if (batch == 0 || key_heads == 0) return;
  const Backward backward{HeadRows<float>(a.dq),
                          HeadRows<float>(a.dk),
                          HeadRows<float>(a.dv),
                          HeadRows<const float>(a.dout),
                          HeadRows<const float>(a.q),
                          HeadRows<const float>(a.k),
                          HeadRows<const float>(a.v),
                          HeadRows<const float>(a.out),
                          a.lse,
                          AttentionMask(a),
                          a.q.size[1],
                          a.q.size[2] / key_heads,
                          a.q.size[3],
                          a.scale};
  parallel_tasks(context, "nsp attention backward", batch * key_heads, backward.scratch_floats(),
                 [&](int64_t task, float* scratch) { backward.key_head(task / key_heads, task % key_heads, scratch); });
}

}  // namespace nsp::cpu::kernels
