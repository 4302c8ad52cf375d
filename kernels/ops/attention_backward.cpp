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

template <class T>
struct Backward {
  HeadRows<T> dq, dk, dv;
  HeadRows<const T> dout, q, k, v, out;
  nsp_tensor lse;
  AttentionMask mask;
  int64_t queries, group, size;
  float scale;

  // delta per query and head of the group, transposed keys and values, scores and their gradients; fp32 copies of a block of
  // queries, of their gradients and of keys; sums of dq of the group, of a block of dk and of dv.
  int64_t scratch_floats() const {
    return queries * group + 2 * size * kKeyBlock + 2 * kQueryBlock * kKeyBlock +
           if_widened<T>((2 * kQueryBlock + 3 * kKeyBlock + queries * group) * size);
  }

  struct Work {
    float *delta, *keys, *values, *scores, *dp, *query, *gradient, *key, *dk, *dv, *dq;
    SourceRows key_rows;
    SumRows dk_sums, dv_sums;
  };
  Work cut(float* scratch) const {
    Work w{};
    w.delta = scratch;
    w.keys = w.delta + queries * group;
    w.values = w.keys + size * kKeyBlock;
    w.scores = w.values + size * kKeyBlock;
    w.dp = w.scores + kQueryBlock * kKeyBlock;
    w.query = w.dp + kQueryBlock * kKeyBlock;
    w.gradient = w.query + if_widened<T>(kQueryBlock * size);
    w.key = w.gradient + if_widened<T>(kQueryBlock * size);
    w.dk = w.key + if_widened<T>(kKeyBlock * size);
    w.dv = w.dk + if_widened<T>(kKeyBlock * size);
    w.dq = w.dv + if_widened<T>(kKeyBlock * size);
    return w;
  }
  // Sums of dq of head h.
  SumRows dq_sums(int64_t b, int64_t h, const Work& w) const {
    if constexpr (kWidened<T>) {
      return {w.dq + h % group * queries * size, size};
    } else {
      return {dq.at(b, 0, h), dq.row};
    }
  }

  // One block of queries of head h against the key block at `key`.
  void block(int64_t b, int64_t h, int64_t t, int64_t rows, const BlockRanges& ranges, int64_t key, int64_t width, const Work& w) const {
    const float* logs = static_cast<const float*>(lse.data) + b * lse.stride[0] + h * lse.stride[1];
    const float* delta = w.delta + (h % group) * queries;
    const SourceRows query = source_rows(q.at(b, t, h), q.row, rows, size, w.query);
    const SourceRows gradient = source_rows(dout.at(b, t, h), dout.row, rows, size, w.gradient);
    small_gemm(rows, kKeyBlock, size, {query.data, query.stride, 1}, w.keys, kKeyBlock, w.scores, kKeyBlock, false);
    small_gemm(rows, kKeyBlock, size, {gradient.data, gradient.stride, 1}, w.values, kKeyBlock, w.dp, kKeyBlock, false);
    for (int64_t r = 0; r < rows; ++r) {
      gradient_row(w.scores + r * kKeyBlock, w.dp + r * kKeyBlock, ranges.within(r, key, width), width, scale, logs[t + r], delta[t + r]);
    }
    const int64_t lo = std::max(ranges.hull.lo - key, int64_t{0}), hi = std::min(ranges.hull.hi - key, width);
    const SumRows dq_rows = dq_sums(b, h, w);
    small_gemm(hi - lo, size, rows, {w.scores + lo, 1, kKeyBlock}, gradient.data, gradient.stride, w.dv_sums.row(lo), w.dv_sums.stride,
               true);
    small_gemm(hi - lo, size, rows, {w.dp + lo, 1, kKeyBlock}, query.data, query.stride, w.dk_sums.row(lo), w.dk_sums.stride, true);
    small_gemm(rows, size, hi - lo, {w.dp + lo, kKeyBlock, 1}, w.key_rows.data + lo * w.key_rows.stride, w.key_rows.stride, dq_rows.row(t),
               dq_rows.stride, true);
  }

  void start(int64_t b, int64_t g, const Work& w) const {
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      sum_rows(dq.at(b, 0, h), dq.row, queries, size, w.dq + if_widened<T>(h % group * queries * size));
      for (int64_t t = 0; t < queries; ++t) {
        const T *gradient = dout.at(b, t, h), *result = out.at(b, t, h);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t d = 0; d < size; ++d) sum += widen(gradient[d]) * widen(result[d]);
        w.delta[(h % group) * queries + t] = sum;
      }
    }
  }

  void key_head(int64_t b, int64_t g, float* scratch) const {
    Work w = cut(scratch);
    start(b, g, w);
    for (int64_t key = 0; key < mask.keys; key += kKeyBlock) {
      const int64_t width = std::min(kKeyBlock, mask.keys - key);
      transpose_block(k.at(b, key, g), k.row, width, size, w.keys, kKeyBlock);
      transpose_block(v.at(b, key, g), v.row, width, size, w.values, kKeyBlock);
      w.key_rows = source_rows(k.at(b, key, g), k.row, width, size, w.key);
      w.dk_sums = sum_rows(dk.at(b, key, g), dk.row, width, size, w.dk);
      w.dv_sums = sum_rows(dv.at(b, key, g), dv.row, width, size, w.dv);
      for (int64_t t = 0; t < queries; t += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, queries - t);
        const BlockRanges ranges(mask, b, t, rows);
        if (ranges.hull.hi <= key || ranges.hull.lo >= key + width) continue;
        for (int64_t h = g * group; h < (g + 1) * group; ++h) block(b, h, t, rows, ranges, key, width, w);
      }
      store_rows(w.dk_sums, dk.at(b, key, g), dk.row, width, size);
      store_rows(w.dv_sums, dv.at(b, key, g), dv.row, width, size);
    }
    for (int64_t h = g * group; h < (g + 1) * group; ++h) store_rows(dq_sums(b, h, w), dq.at(b, 0, h), dq.row, queries, size);
  }
};

template <class T>
void backward_all(Context& context, const nsp_attention_backward_args& a) {
  const int64_t batch = a.q.size[0], key_heads = a.k.size[2];
  if (batch == 0 || key_heads == 0) return;
  const Backward<T> backward{HeadRows<T>(a.dq),
                             HeadRows<T>(a.dk),
                             HeadRows<T>(a.dv),
                             HeadRows<const T>(a.dout),
                             HeadRows<const T>(a.q),
                             HeadRows<const T>(a.k),
                             HeadRows<const T>(a.v),
                             HeadRows<const T>(a.out),
                             a.lse,
                             AttentionMask(a),
                             a.q.size[1],
                             a.q.size[2] / key_heads,
                             a.q.size[3],
                             a.scale};
  parallel_tasks(context, "nsp attention backward", batch * key_heads, backward.scratch_floats(),
                 [&](int64_t task, float* scratch) { backward.key_head(task / key_heads, task % key_heads, scratch); });
}

}  // namespace

void attention_backward(Context& context, const nsp_attention_backward_args& a) {
  with_element(a.q.dtype, [&](auto element) { backward_all<decltype(element)>(context, a); });
}

}  // namespace nsp::cpu::kernels
