// This file is built for the baseline of the architecture, as all of core is: the wide kernels are functions with a target of
// their own, and which one runs is asked of the processor.
#include "core/bench/fma_peak.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nsp::bench {
namespace {

using Clock = std::chrono::steady_clock;

// `rounds` times one multiply-add on each of `accumulators` vectors; returns something that depends on all of them.
struct Kernel {
  float (*run)(int64_t rounds, float factor) = nullptr;
  double flops = 0;  // of one round
};

// As many accumulators as the registers hold: more than latency times issue width (4 x 2 for fp32, 6 x 2 for bf16) of the
// processors that we know, so that none waits for its own last result. x -> x f + f with f = 1/2 stays near 1, without overflow
// or denormal numbers. They start with different numbers, or a compiler would see that all compute the same. The loops over them have
// fixed lengths and are unrolled, which keeps the vectors in registers.
using Vector4 = float __attribute__((vector_size(16)));

float plain_rounds(int64_t rounds, float factor) {
  constexpr int accumulators = 12;
  Vector4 sums[accumulators], f = {factor, factor, factor, factor};
  for (int a = 0; a < accumulators; ++a) sums[a] = f * static_cast<float>(a);
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 32
    for (Vector4& sum : sums) sum = sum * f + f;
  for (const Vector4& sum : sums) f += sum;
  return f[0] + f[1] + f[2] + f[3];
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) float avx2_rounds(int64_t rounds, float factor) {
  constexpr int accumulators = 12;
  __m256 f = _mm256_set1_ps(factor), sums[accumulators];
  for (int a = 0; a < accumulators; ++a) sums[a] = _mm256_set1_ps(factor * static_cast<float>(a));
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 32
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, f, f);
  for (const __m256& sum : sums) f = _mm256_add_ps(f, sum);
  return _mm256_cvtss_f32(f);
}

__attribute__((target("avx512f"))) float avx512_rounds(int64_t rounds, float factor) {
  constexpr int accumulators = 24;
  __m512 f = _mm512_set1_ps(factor), sums[accumulators];
  for (int a = 0; a < accumulators; ++a) sums[a] = _mm512_set1_ps(factor * static_cast<float>(a));
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 32
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, f, f);
  for (const __m512& sum : sums) f = _mm512_add_ps(f, sum);
  return _mm512_cvtss_f32(f);
}

// Each fp32 lane gets the sum of two products of bf16. Sums that only grow end at a finite number, where adding no longer changes it.
__attribute__((target("avx512bf16,avx512f"))) float avx512_bf16_rounds(int64_t rounds, float factor) {
  constexpr int accumulators = 24;
  __m512 f = _mm512_set1_ps(factor), sums[accumulators];
  const __m512bh pairs = _mm512_cvtne2ps_pbh(f, f);
  for (int a = 0; a < accumulators; ++a) sums[a] = _mm512_set1_ps(factor * static_cast<float>(a));
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 32
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pairs, pairs);
  for (const __m512& sum : sums) f = _mm512_add_ps(f, sum);
  return _mm512_cvtss_f32(f);
}

Kernel kernel_for(DType dtype) {
  if (dtype == DType::bf16) {
    if (__builtin_cpu_supports("avx512bf16")) return {avx512_bf16_rounds, 24.0 * 16 * 4};
    return {};
  }
  if (__builtin_cpu_supports("avx512f")) return {avx512_rounds, 24.0 * 16 * 2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {avx2_rounds, 12.0 * 8 * 2};
  return {plain_rounds, 12.0 * 4 * 2};
}

#else

Kernel kernel_for(DType dtype) {
  return dtype == DType::f32 ? Kernel{plain_rounds, 12.0 * 4 * 2} : Kernel{};
}

#endif

// Seconds until all threads are through. They start together when all are there, so that starting them does not count.
double seconds_of(const Kernel& kernel, int threads, int64_t rounds) {
  std::atomic<int> waiting{threads};
  std::atomic<float> sink{0};  // a result that somebody might read cannot be left out
  Clock::time_point start;
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t) {
      team.emplace_back([&, rounds] {
        if (waiting.fetch_sub(1) == 1) {
          start = Clock::now();
          waiting.store(-1);
          waiting.notify_all();
        }
        for (int seen = waiting.load(); seen != -1; seen = waiting.load()) waiting.wait(seen);
        sink.store(kernel.run(rounds, 0.5f));
      });
    }
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double host_fma_peak(int threads, DType dtype, double seconds) {
  const Kernel kernel = kernel_for(dtype);
  if (kernel.run == nullptr) return 0;
  // Long enough that the start and the end of the threads do not matter, where there is time for it; short enough that one of them is
  // left alone by whatever else the machine does.
  const double sample = std::clamp(seconds / 20, 1e-4, 5e-3);
  int64_t rounds = 1000;
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int samples = 0; samples < 3 || Clock::now() - begin < std::chrono::duration<double>(seconds);) {
    const double took = seconds_of(kernel, threads, rounds);
    if (took < sample) {
      rounds *= 2;
      continue;
    }
    best = std::max(best, 1e-9 * kernel.flops * static_cast<double>(rounds) * threads / took);
    ++samples;
  }
  return best;
}

}  // namespace nsp::bench
