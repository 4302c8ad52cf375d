// How a factor of a product lies in memory while it is multiplied: in panels of P units (rows of A, columns of B), one
// after another; within a panel all units of a step of k side by side. A step is one k in fp32. Factors in bf16 are
// either widened to that, or kept as pairs (k, k + 1) in 32 bits, as the instruction that multiplies pairs wants them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ops/element.hpp"

namespace nsp::cpu {

// What stands in 32 bits of a panel.
enum class Lane { single, pair };

constexpr int64_t steps_of(int64_t k, Lane lane) {
  return lane == Lane::pair ? (k + 1) / 2 : k;
}

// A factor where it lies. One of the two strides is 1 (in elements).
template <class T>
struct Factor {
  const T* data;
  int64_t unit_stride, k_stride;
  const T* at(int64_t unit, int64_t k) const { return data + unit * unit_stride + k * k_stride; }
};

namespace panels_detail {

inline float join(Bf16 even, Bf16 odd) {
  return std::bit_cast<float>(static_cast<uint32_t>(even) | static_cast<uint32_t>(odd) << 16);
}

// One element, or pair, of a factor.
template <Lane L, class T>
float lane_at(const Factor<T>& f, int64_t unit, int64_t step, int64_t k) {
  if constexpr (L == Lane::single) {
    return widen(*f.at(unit, step));
  } else {
    return join(*f.at(unit, 2 * step), 2 * step + 1 < k ? *f.at(unit, 2 * step + 1) : Bf16{});
  }
}

#if defined(__AVX2__)
// Four 32-bit words of each of W rows, transposed: word i of all rows in out[i]. Rows are loaded into the quarters of
// registers in such an order that only shuffles within quarters are left to do.
template <int W>
struct Words;

#if defined(__AVX512F__)
template <>
struct Words<16> {
  using Register = __m512;
  static Register load(const char* rows, int64_t stride, int first) {
    const auto row = [&](int i) { return _mm_loadu_ps(reinterpret_cast<const float*>(rows + (first + i) * stride)); };
    __m512 r = _mm512_castps128_ps512(row(0));
    r = _mm512_insertf32x4(r, row(4), 1);
    r = _mm512_insertf32x4(r, row(8), 2);
    return _mm512_insertf32x4(r, row(12), 3);
  }
  static Register low(Register a, Register b) { return _mm512_unpacklo_ps(a, b); }
  static Register high(Register a, Register b) { return _mm512_unpackhi_ps(a, b); }
  static Register low_pairs(Register a, Register b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static Register high_pairs(Register a, Register b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static void store(float* to, Register r) { _mm512_storeu_ps(to, r); }
  static Register even(Register r) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(r), 16)); }
  static Register odd(Register r) { return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(r), _mm512_set1_epi32(-65536))); }
};
#endif
template <>
struct Words<8> {
  using Register = __m256;
  static Register load(const char* rows, int64_t stride, int first) {
    const auto row = [&](int i) { return _mm_loadu_ps(reinterpret_cast<const float*>(rows + (first + i) * stride)); };
    return _mm256_insertf128_ps(_mm256_castps128_ps256(row(0)), row(4), 1);
  }
  static Register low(Register a, Register b) { return _mm256_unpacklo_ps(a, b); }
  static Register high(Register a, Register b) { return _mm256_unpackhi_ps(a, b); }
  static Register low_pairs(Register a, Register b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static Register high_pairs(Register a, Register b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static void store(float* to, Register r) { _mm256_storeu_ps(to, r); }
  static Register even(Register r) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(r), 16)); }
  static Register odd(Register r) { return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(r), _mm256_set1_epi32(-65536))); }
};
template <>
struct Words<4> {
  using Register = __m128;
  static Register load(const char* rows, int64_t stride, int first) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(rows + first * stride));
  }
  static Register low(Register a, Register b) { return _mm_unpacklo_ps(a, b); }
  static Register high(Register a, Register b) { return _mm_unpackhi_ps(a, b); }
  static Register low_pairs(Register a, Register b) { return _mm_movelh_ps(a, b); }
  static Register high_pairs(Register a, Register b) { return _mm_movehl_ps(b, a); }
  static void store(float* to, Register r) { _mm_storeu_ps(to, r); }
  static Register even(Register r) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(r), 16)); }
  static Register odd(Register r) { return _mm_castsi128_ps(_mm_and_si128(_mm_castps_si128(r), _mm_set1_epi32(-65536))); }
};
#endif

// W units whose k lie side by side, into columns first .. first + W of a panel of P. `steps` of k in all.
template <Lane L, int P, int W, class T>
inline void pack_across(const Factor<T>& f, int64_t k, int64_t steps, float* panel) {
  int64_t step = 0;
#if defined(__AVX2__)
  if constexpr (W >= 4) {
    using Of = Words<W>;
    constexpr int kPerWord = std::is_same_v<T, float> ? 1 : 2;  // elements of k
    constexpr int kStepsPerWord = L == Lane::single ? kPerWord : 1;
    const int64_t whole_words = k / kPerWord / 4 * 4;
    const int64_t stride = f.unit_stride * static_cast<int64_t>(sizeof(T));
    for (int64_t word = 0; word < whole_words; word += 4) {
      const char* rows = reinterpret_cast<const char*>(f.data + word * kPerWord);
      const auto a = Of::load(rows, stride, 0), b = Of::load(rows, stride, 1), c = Of::load(rows, stride, 2), d = Of::load(rows, stride, 3);
      const auto ab_low = Of::low(a, b), ab_high = Of::high(a, b), cd_low = Of::low(c, d), cd_high = Of::high(c, d);
      const typename Of::Register words[4] = {Of::low_pairs(ab_low, cd_low), Of::high_pairs(ab_low, cd_low),
                                              Of::low_pairs(ab_high, cd_high), Of::high_pairs(ab_high, cd_high)};
      for (int i = 0; i < 4; ++i) {
        float* to = panel + (word + i) * kStepsPerWord * P;
        if constexpr (kStepsPerWord == 2) {
          Of::store(to, Of::even(words[i]));
          Of::store(to + P, Of::odd(words[i]));
        } else {
          Of::store(to, words[i]);
        }
      }
    }
    step = whole_words * kStepsPerWord;
  }
#endif
  for (; step < steps; ++step) {
    for (int unit = 0; unit < W; ++unit) panel[step * P + unit] = lane_at<L>(f, unit, step, k);
  }
}

// The widest registers first: what is left of the panel's width goes to narrower ones.
template <Lane L, int P, int W, class T>
void pack_panel_across(Factor<T> f, int64_t k, int64_t steps, int64_t units, float* panel) {
  for (; units >= W; units -= W) {
    pack_across<L, P, W>(f, k, steps, panel);
    f.data = f.at(W, 0);
    panel += W;
  }
  if constexpr (W > 1) pack_panel_across<L, P, W / 2>(f, k, steps, units, panel);
}

// Units that lie side by side in memory, into panels of P. Step by step over all panels, so that memory is read in order.
template <Lane L, int P, class T>
void pack_along(const Factor<T>& f, int64_t units, int64_t k, int64_t steps, float* to) {
  for (int64_t step = 0; step < steps; ++step) {
    constexpr int64_t kPerStep = L == Lane::pair ? 2 : 1;
    const T* even = f.at(0, step * kPerStep);
    [[maybe_unused]] const T* odd = kPerStep * step + 1 < k ? f.at(0, step * kPerStep + 1) : nullptr;
    const auto lane = [&](int64_t i) {
      if constexpr (L == Lane::single) {
        return widen(even[i]);
      } else {
        return join(even[i], odd == nullptr ? Bf16{} : odd[i]);
      }
    };
    float* row = to + step * P;
    int64_t unit = 0;
    for (; unit + P <= units; unit += P, row += P * steps) {
#pragma omp simd
      for (int64_t i = 0; i < P; ++i) row[i] = lane(unit + i);
    }
    for (int64_t i = 0; unit + i < units; ++i) row[i] = lane(unit + i);
  }
}

}  // namespace panels_detail

// Floats that panels of `units` units and `k` take.
template <Lane L, int P>
constexpr int64_t panel_floats(int64_t units, int64_t k) {
  return (units + P - 1) / P * P * steps_of(k, L);
}

// Packs `units` units of a factor. Units beyond the last, up to a whole panel, become 0.
template <Lane L, int P, class T>
void pack(Factor<T> f, int64_t units, int64_t k, float* to) {
  using namespace panels_detail;
  const int64_t steps = steps_of(k, L);
#if defined(__AVX512F__)
  constexpr int kWidest = P >= 16 ? 16 : 8;
#else
  constexpr int kWidest = P >= 8 ? 8 : 4;
#endif
  if (units % P != 0) std::fill_n(to + units / P * P * steps, P * steps, 0.0f);
  if (f.k_stride != 1) return pack_along<L, P>(f, units, k, steps, to);
  for (; units > 0; units -= P, to += P * steps) {
    pack_panel_across<L, P, kWidest>(f, k, steps, std::min<int64_t>(units, P), to);
    f.data = f.at(P, 0);
  }
}

}  // namespace nsp::cpu
