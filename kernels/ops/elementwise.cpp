// Ops that change state element by element. They give the same bits on every backend, so this file is compiled without
// contraction (cmake/cpu_backend.cmake), and each expression stands in the order of nsp/backend.h.
#include <bit>

#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr int64_t kGrain = 32768;  // elements of one block

uint16_t to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // to nearest, ties to even
  const uint32_t quiet = (bits >> 16) | 0x40u;                            // a NaN must not round to infinity
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

float from_bf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

}  // namespace

void cast(Context&, const nsp_cast_args& a) {
  const int64_t n = a.x.size[0];
  if (a.x.dtype == NSP_F32) {
    const Vector<const float> x(a.x);
    const Vector<uint16_t> out(a.out);
    parallel_blocks("nsp cast", n, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
      for (int64_t i = lo; i < hi; ++i) out.data[i] = to_bf16(x.data[i]);
    });
  } else {
    const Vector<const uint16_t> x(a.x);
    const Vector<float> out(a.out);
    parallel_blocks("nsp cast", n, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
      for (int64_t i = lo; i < hi; ++i) out.data[i] = from_bf16(x.data[i]);
    });
  }
}

void scale(Context&, const nsp_scale_args& args) {
  float* x = static_cast<float*>(args.x.data);
  const float a = args.a;
  parallel_blocks("nsp scale", args.x.size[0], kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) x[i] = x[i] * a;
  });
}

void axpy(Context&, const nsp_axpy_args& args) {
  float* y = static_cast<float*>(args.y.data);
  const float* x = static_cast<const float*>(args.x.data);
  const float a = args.a;
  parallel_blocks("nsp axpy", args.x.size[0], kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) y[i] = y[i] + a * x[i];
  });
}

void lerp(Context&, const nsp_lerp_args& args) {
  float* out = static_cast<float*>(args.out.data);  // may be base or x: element i is read before it is written
  const float* base = static_cast<const float*>(args.base.data);
  const float* x = static_cast<const float*>(args.x.data);
  const float* origin = static_cast<const float*>(args.origin.data);
  const float weight = args.weight;
  parallel_blocks("nsp lerp", args.x.size[0], kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) out[i] = base[i] + weight * (x[i] - origin[i]);
  });
}

}  // namespace nsp::cpu::kernels
