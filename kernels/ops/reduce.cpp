// Sums over whole vectors, blockwise in an order that depends on the length alone, and the search for bad numbers.
#include <atomic>
#include <bit>

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr int64_t kBlock = 16384;  // elements of one partial sum

// The loops stand in functions of their own: inside a parallel region the compiler keeps their sums in memory.
template <bool Square, class T>
[[gnu::noinline]] double block_sum(const T* x, int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(widen(x[i]));
    sum += Square ? value * value : value;
  }
  return sum;
}

template <class T>
[[gnu::noinline]] bool any_bad(const T* x, int64_t n) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t i = 0; i < n; ++i) any |= (std::bit_cast<uint32_t>(widen(x[i])) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  return any != 0;
}

template <bool Square, class T>
void reduce(Context& context, const nsp_tensor& out, const nsp_tensor& input, bool accumulate) {
  const Vector<const T> x(input);
  const int64_t blocks = (x.size + kBlock - 1) / kBlock;
  double* partial = context.scratch.doubles(static_cast<std::size_t>(blocks));
  parallel_blocks("nsp sum", x.size, kBlock,
                  [=](int64_t lo, int64_t hi, int64_t block) { partial[block] = block_sum<Square, T>(x.data + lo, hi - lo); });
  double total = 0.0;
  for (int64_t block = 0; block < blocks; ++block) total += partial[block];
  double* result = static_cast<double*>(out.data);
  *result = accumulate ? *result + total : total;
}

template <class T>
void find_bad(const nsp_all_finite_args& a) {
  const Vector<const T> x(a.x);
  std::atomic<bool> bad{false};
  std::atomic<bool>* found = &bad;
  parallel_blocks("nsp all finite", x.size, kBlock, [=](int64_t lo, int64_t hi, int64_t) {
    if (any_bad(x.data + lo, hi - lo)) found->store(true, std::memory_order_relaxed);
  });
  if (bad) *static_cast<int32_t*>(a.bad.data) = 1;
}

}  // namespace

void sum(Context& context, const nsp_sum_args& a) {
  with_element(a.x.dtype, [&](auto element) { reduce<false, decltype(element)>(context, a.out, a.x, a.accumulate != 0); });
}
void sum_of_squares(Context& context, const nsp_sum_of_squares_args& a) {
  with_element(a.x.dtype, [&](auto element) { reduce<true, decltype(element)>(context, a.out, a.x, a.accumulate != 0); });
}
void all_finite(Context&, const nsp_all_finite_args& a) {
  with_element(a.x.dtype, [&](auto element) { find_bad<decltype(element)>(a); });
}

}  // namespace nsp::cpu::kernels
