// Softmax, cross-entropy and gradient in place, a row per work item: one sweep for the maximum, one for the exponentials
// and their sum, one that scales them.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/vector_math.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

// Whether the exponentials may lie in the row until they are scaled.
template <class T>
constexpr bool kStores = std::is_same_v<T, float>;

// Kept out of line: inside a parallel region the compiler keeps the maximum and the sum in memory.
template <class T>
[[gnu::noinline]] float largest(const T* x, int64_t n) {
  float result = widen(x[0]);
#pragma omp simd reduction(max : result)
  for (int64_t i = 0; i < n; ++i) result = widen(x[i]) > result ? widen(x[i]) : result;
  return result;
}

// Sum of exp(x - shift); with Store, x becomes the exponentials. Blocks in fp32, their sum in double.
template <bool Store, class T>
[[gnu::noinline]] double sum_of_exponentials(T* x, int64_t n, float shift) {
  constexpr int64_t kBlock = 1024;
  double total = 0.0;
  for (int64_t lo = 0; lo < n; lo += kBlock) {
    const int64_t hi = std::min(n, lo + kBlock);
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = lo; i < hi; ++i) {
      const float e = fast_exp(widen(x[i]) - shift);
      if constexpr (Store) x[i] = e;
      sum += e;
    }
    total += static_cast<double>(sum);
  }
  return total;
}

// row = exponentials * factor. fp32 has them in place; bf16 would round them twice, so it computes them again.
template <class T>
[[gnu::noinline]] void write_gradient(T* row, int64_t vocabulary, int32_t target, float shift, float factor, float gradient_scale) {
  if constexpr (kStores<T>) {
#pragma omp simd
    for (int64_t v = 0; v < vocabulary; ++v) row[v] *= factor;
    row[target] -= gradient_scale;
  } else {
    const float at_target = fast_exp(widen(row[target]) - shift) * factor - gradient_scale;
#pragma omp simd
    for (int64_t v = 0; v < vocabulary; ++v) row[v] = narrow<T>(fast_exp(widen(row[v]) - shift) * factor);
    row[target] = narrow<T>(at_target);
  }
}

template <class T>
void losses_and_gradient(const nsp_classifier_args& a) {
  const Matrix<T> logits(a.logits);
  const Vector<const int32_t> targets(a.targets);
  const Vector<float> losses(a.losses);
  const int64_t vocabulary = a.vocabulary;
  const bool write = a.write_gradient != 0;
  const float gradient_scale = a.gradient_scale;
  parallel_items("nsp classifier", logits.rows, 12 * vocabulary, [=](int64_t n) {
    T* row = logits.row(n);
    const int32_t target = targets[n];
    if (target < 0) {
      losses[n] = 0.0f;
      if (write) std::fill(row, row + logits.columns, T{});
      return;
    }
    const float shift = largest(row, vocabulary), wanted = widen(row[target]);
    const double sum = write ? sum_of_exponentials<kStores<T>>(row, vocabulary, shift) : sum_of_exponentials<false>(row, vocabulary, shift);
    losses[n] = static_cast<float>(std::log(sum) + (static_cast<double>(shift) - static_cast<double>(wanted)));
    if (!write) return;
    write_gradient(row, vocabulary, target, shift, static_cast<float>(static_cast<double>(gradient_scale) / sum), gradient_scale);
    std::fill(row + vocabulary, row + logits.columns, T{});
  });
}

}  // namespace

void classifier(Context&, const nsp_classifier_args& a) {
  const Vector<const int32_t> targets(a.targets);
  for (int64_t n = 0; n < targets.size; ++n) {  // they lie in device memory: the host cannot check them at the call
    if (targets[n] >= a.vocabulary) {
      throw std::out_of_range("classifier: targets[" + std::to_string(n) + "] is " + std::to_string(targets[n]) + ", outside 0 to " +
                              std::to_string(a.vocabulary - 1));
    }
  }
  with_element(a.logits.dtype, [&](auto element) { losses_and_gradient<decltype(element)>(a); });
}

}  // namespace nsp::cpu::kernels
