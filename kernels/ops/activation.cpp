// GELU (tanh form) and SwiGLU. With z = 2 sqrt(2/pi) (x + 0.044715 x^3), 0.5 (1 + tanh(z/2)) is the logistic function
// of z, which keeps its relative accuracy where 1 + tanh cancels.
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/vector_math.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr float kTwoSqrtTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

}  // namespace

void gelu_forward(Context&, const nsp_gelu_forward_args& a) {
  const Matrix<float> out(a.out);
  const Matrix<const float> x(a.x);
  parallel_items("nsp gelu", x.rows, 8 * x.columns, [=](int64_t n) {
    const float* in = x.row(n);
    float* result = out.row(n);
#pragma omp simd
    for (int64_t c = 0; c < x.columns; ++c) {
      const float v = in[c];
      result[c] = v * logistic(kTwoSqrtTwoOverPi * (v + kCubic * v * v * v)).value;
    }
  });
}

void gelu_backward(Context&, const nsp_gelu_backward_args& a) {
  const Matrix<float> dx(a.dx);
  const Matrix<const float> dout(a.dout), x(a.x);
  parallel_items("nsp gelu backward", x.rows, 10 * x.columns, [=](int64_t n) {
    const float *in = x.row(n), *gradient = dout.row(n);
    float* result = dx.row(n);
#pragma omp simd
    for (int64_t c = 0; c < x.columns; ++c) {
      const float v = in[c];
      const Logistic s = logistic(kTwoSqrtTwoOverPi * (v + kCubic * v * v * v));
      const float dz = kTwoSqrtTwoOverPi * (1.0f + 3.0f * kCubic * v * v);
      result[c] = gradient[c] * (s.value + v * s.slope * dz);
    }
  });
}

void swiglu_forward(Context&, const nsp_swiglu_forward_args& a) {
  const Matrix<float> out(a.out);
  const Matrix<const float> gate(a.gate), up(a.up);
  parallel_items("nsp swiglu", out.rows, 8 * out.columns, [=](int64_t n) {
    const float *g = gate.row(n), *u = up.row(n);
    float* result = out.row(n);
#pragma omp simd
    for (int64_t c = 0; c < out.columns; ++c) result[c] = g[c] * logistic(g[c]).value * u[c];
  });
}

void swiglu_backward(Context&, const nsp_swiglu_backward_args& a) {
  const Matrix<float> dgate(a.dgate), dup(a.dup);
  const Matrix<const float> dout(a.dout), gate(a.gate), up(a.up);
  parallel_items("nsp swiglu backward", gate.rows, 10 * gate.columns, [=](int64_t n) {
    const float *gradient = dout.row(n), *g = gate.row(n), *u = up.row(n);
    float *dg = dgate.row(n), *du = dup.row(n);
#pragma omp simd
    for (int64_t c = 0; c < gate.columns; ++c) {
      const float v = g[c], d = gradient[c], w = u[c];
      const Logistic s = logistic(v);
      dg[c] = d * w * (s.value + v * s.slope);
      du[c] = d * v * s.value;
    }
  });
}

}  // namespace nsp::cpu::kernels
