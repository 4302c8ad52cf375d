// Rotary position embedding, half-rotation layout. Angles are formed in double: a float angle of position 100,000 is off
// by several thousandths of a turn.
#include <cmath>

#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu::kernels {

void rope(Context& context, const nsp_rope_args& a) {
  const int64_t batch = a.x.size[0], length = a.x.size[1], heads = a.x.size[2], half = a.x.size[3] / 2;
  if (half == 0) return;
  double* frequency = context.scratch.doubles(static_cast<std::size_t>(half));
  for (int64_t d = 0; d < half; ++d) frequency[d] = std::pow(static_cast<double>(a.theta), -static_cast<double>(d) / static_cast<double>(half));
  const nsp_tensor x = a.x, out = a.out, positions = a.positions;
  const double direction = a.inverse ? -1.0 : 1.0;
  auto rotate_token = [=](int64_t token, float* scratch) {
    const int64_t b = token / length, t = token % length;
    const int32_t position = static_cast<const int32_t*>(positions.data)[b * positions.stride[0] + t];
    float *cosine = scratch, *sine = scratch + half;
    for (int64_t d = 0; d < half; ++d) {
      const double angle = static_cast<double>(position) * frequency[d];
      cosine[d] = static_cast<float>(std::cos(angle));
      sine[d] = static_cast<float>(direction * std::sin(angle));
    }
    for (int64_t h = 0; h < heads; ++h) {
      const float* in = static_cast<const float*>(x.data) + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
      float* result = static_cast<float*>(out.data) + b * out.stride[0] + t * out.stride[1] + h * out.stride[2];
#pragma omp simd
      for (int64_t d = 0; d < half; ++d) {  // out may be x: both of a pair are read before either is written
        const float first = in[d], second = in[d + half];
        result[d] = first * cosine[d] - second * sine[d];
        result[d + half] = first * sine[d] + second * cosine[d];
      }
    }
  };
  parallel_tasks(context, "nsp rope", batch * length, 2 * half, rotate_token);
}

}  // namespace nsp::cpu::kernels
