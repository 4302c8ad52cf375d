// Rotary position embedding, half-rotation layout. Angles are formed in double: a float angle of position 100,000 is off
// by several thousandths of a turn. Their sines, which would cost more than the rotation, are computed once per position
// where the tokens share positions (every sequence of a batch has the same ones).
#include <algorithm>
#include <cmath>

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu::kernels {

namespace {

int32_t position_at(const nsp_tensor& positions, int64_t length, int64_t token) {
  return static_cast<const int32_t*>(positions.data)[token / length * positions.stride[0] + token % length];
}

struct Rotation {
  nsp_tensor out, x, positions;
  const double* frequency;
  double direction;
  int64_t length, heads, half;

  int32_t position(int64_t token) const { return position_at(positions, length, token); }
  // half cosines, then half sines.
  void angles(int32_t position, float* table) const {
    for (int64_t d = 0; d < half; ++d) {
      const double angle = static_cast<double>(position) * frequency[d];
      table[d] = static_cast<float>(std::cos(angle));
      table[half + d] = static_cast<float>(direction * std::sin(angle));
    }
  }
  template <class T>
  void rotate(int64_t token, const float* table) const {
    const float *cosine = table, *sine = table + half;
    const int64_t b = token / length, t = token % length;
    for (int64_t h = 0; h < heads; ++h) {
      const T* in = static_cast<const T*>(x.data) + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
      T* result = static_cast<T*>(out.data) + b * out.stride[0] + t * out.stride[1] + h * out.stride[2];
#pragma omp simd
      for (int64_t d = 0; d < half; ++d) {  // out may be x: both of a pair are read before either is written
        const float first = widen(in[d]), second = widen(in[d + half]);
        result[d] = narrow<T>(first * cosine[d] - second * sine[d]);
        result[d + half] = narrow<T>(first * sine[d] + second * cosine[d]);
      }
    }
  }
};

template <class T>
void rotate_all(Context& context, const nsp_rope_args& a) {
  const int64_t tokens = a.x.size[0] * a.x.size[1], half = a.x.size[3] / 2;
  if (half == 0 || tokens == 0) return;
  int32_t first = position_at(a.positions, a.x.size[1], 0), last = first;
  for (int64_t token = 1; token < tokens; ++token) {
    const int32_t position = position_at(a.positions, a.x.size[1], token);
    first = std::min(first, position);
    last = std::max(last, position);
  }
  const int64_t span = static_cast<int64_t>(last) - first + 1;
  // Frequencies, and behind them the table of each position, half cosines and half sines in float: as many bytes as the frequencies.
  double* frequency = context.scratch.doubles(static_cast<std::size_t>(half * (span > tokens ? 1 : 1 + span)));
  for (int64_t d = 0; d < half; ++d)
    frequency[d] = std::pow(static_cast<double>(a.theta), -static_cast<double>(d) / static_cast<double>(half));
  const Rotation r{a.out, a.x, a.positions, frequency, a.inverse ? -1.0 : 1.0, a.x.size[1], a.x.size[2], half};
  if (span > tokens) {
    parallel_tasks(context, "nsp rope", tokens, 2 * half, [&](int64_t token, float* table) {
      r.angles(r.position(token), table);
      r.rotate<T>(token, table);
    });
    return;
  }
  auto* tables = reinterpret_cast<float*>(frequency + half);
  parallel_items("nsp rope angles", span, 80 * half, [=](int64_t i) { r.angles(static_cast<int32_t>(first + i), tables + i * 2 * half); });
  parallel_items("nsp rope", tokens, 4 * half * r.heads,
                 [=](int64_t token) { r.rotate<T>(token, tables + (r.position(token) - first) * 2 * half); });
}

}  // namespace

void rope(Context& context, const nsp_rope_args& a) {
  with_element(a.x.dtype, [&](auto element) { rotate_all<decltype(element)>(context, a); });
}

}  // namespace nsp::cpu::kernels
