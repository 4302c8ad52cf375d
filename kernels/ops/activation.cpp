// GELU (tanh form) and SwiGLU. With z = 2 sqrt(2/pi) (x + 0.044715 x^3), 0.5 (1 + tanh(z/2)) is the logistic function
// of z, which keeps its relative accuracy where 1 + tanh cancels.
#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/vector_math.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr float kTwoSqrtTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

template <class T>
void gelu(const nsp_gelu_forward_args& a) {
  const Matrix<T> out(a.out);
  const Matrix<const T> x(a.x);
  parallel_items("nsp gelu", x.rows, 8 * x.columns, [=](int64_t n) {
    const T* in = x.row(n);
    T* result = out.row(n);
#pragma omp simd
    for (int64_t c = 0; c < x.columns; ++c) {
      const float v = widen(in[c]);
      result[c] = narrow<T>(v * logistic(kTwoSqrtTwoOverPi * (v + kCubic * v * v * v)).value);
    }
  });
}

template <class T>
void gelu_gradient(const nsp_gelu_backward_args& a) {
  const Matrix<T> dx(a.dx);
  const Matrix<const T> dout(a.dout), x(a.x);
  parallel_items("nsp gelu backward", x.rows, 10 * x.columns, [=](int64_t n) {
    const T *in = x.row(n), *gradient = dout.row(n);
    T* result = dx.row(n);
#pragma omp simd
    for (int64_t c = 0; c < x.columns; ++c) {
      const float v = widen(in[c]);
      const Logistic s = logistic(kTwoSqrtTwoOverPi * (v + kCubic * v * v * v));
      const float dz = kTwoSqrtTwoOverPi * (1.0f + 3.0f * kCubic * v * v);
      result[c] = narrow<T>(widen(gradient[c]) * (s.value + v * s.slope * dz));
    }
  });
}

template <class T>
void swiglu(const nsp_swiglu_forward_args& a) {
  const Matrix<T> out(a.out);
  const Matrix<const T> gate(a.gate), up(a.up);
  parallel_items("nsp swiglu", out.rows, 8 * out.columns, [=](int64_t n) {
    const T *g = gate.row(n), *u = up.row(n);
    T* result = out.row(n);
#pragma omp simd
    for (int64_t c = 0; c < out.columns; ++c) {
      const float v = widen(g[c]);
      result[c] = narrow<T>(v * logistic(v).value * widen(u[c]));
    }
  });
}

template <class T>
void swiglu_gradient(const nsp_swiglu_backward_args& a) {
  const Matrix<T> dgate(a.dgate), dup(a.dup);
  const Matrix<const T> dout(a.dout), gate(a.gate), up(a.up);
  parallel_items("nsp swiglu backward", gate.rows, 10 * gate.columns, [=](int64_t n) {
    const T *gradient = dout.row(n), *g = gate.row(n), *u = up.row(n);
    T *dg = dgate.row(n), *du = dup.row(n);
#pragma omp simd
    for (int64_t c = 0; c < gate.columns; ++c) {
      const float v = widen(g[c]), d = widen(gradient[c]), w = widen(u[c]);
      const Logistic s = logistic(v);
      dg[c] = narrow<T>(d * w * (s.value + v * s.slope));
      du[c] = narrow<T>(d * v * s.value);
    }
  });
}

}  // namespace

void gelu_forward(Context&, const nsp_gelu_forward_args& a) {
  with_element(a.x.dtype, [&](auto element) { gelu<decltype(element)>(a); });
}
void gelu_backward(Context&, const nsp_gelu_backward_args& a) {
  with_element(a.x.dtype, [&](auto element) { gelu_gradient<decltype(element)>(a); });
}
void swiglu_forward(Context&, const nsp_swiglu_forward_args& a) {
  with_element(a.gate.dtype, [&](auto element) { swiglu<decltype(element)>(a); });
}
void swiglu_backward(Context&, const nsp_swiglu_backward_args& a) {
  with_element(a.gate.dtype, [&](auto element) { swiglu_gradient<decltype(element)>(a); });
}

}  // namespace nsp::cpu::kernels
