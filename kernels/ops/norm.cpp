// LayerNorm and RMSNorm, a row per work item; sums over rows go through column_sum.
#include <algorithm>
#include <cmath>

#include "ops/column_sum.hpp"
#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

// The row functions are kept out of line: inside a parallel region the compiler keeps their sums in memory.

struct Statistics {
  float mean, rstd;
};

template <class T>
[[gnu::noinline]] Statistics layernorm_row(T* out, const T* x, const T* w, const T* b, int64_t columns, float eps) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < columns; ++c) sum += widen(x[c]);
  const float mean = sum / static_cast<float>(columns);
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t c = 0; c < columns; ++c) squares += (widen(x[c]) - mean) * (widen(x[c]) - mean);
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(columns) + eps);
#pragma omp simd
  for (int64_t c = 0; c < columns; ++c) out[c] = narrow<T>((widen(x[c]) - mean) * rstd * widen(w[c]) + widen(b[c]));
  return {mean, rstd};
}

template <class T>
[[gnu::noinline]] float rmsnorm_row(T* out, const T* x, const T* w, int64_t columns, float eps) {
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t c = 0; c < columns; ++c) squares += widen(x[c]) * widen(x[c]);
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(columns) + eps);
#pragma omp simd
  for (int64_t c = 0; c < columns; ++c) out[c] = narrow<T>(widen(x[c]) * rstd * widen(w[c]));
  return rstd;
}

// One row of layernorm_backward. d may be dx: element c of it is read before it is written.
template <class T>
[[gnu::noinline]] void layernorm_backward_row(T* dx, float* dw, float* db, const T* d, const T* x, const T* w, float mean, float rstd,
                                              int64_t columns, bool accumulate) {
  float sum = 0.0f, product = 0.0f;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t c = 0; c < columns; ++c) {
    const float normal = (widen(x[c]) - mean) * rstd, gradient = widen(d[c]), g = widen(w[c]) * gradient;
    sum += g;
    product += g * normal;
    dw[c] += gradient * normal;
    db[c] += gradient;
  }
  const float mean_g = sum / static_cast<float>(columns), mean_gn = product / static_cast<float>(columns);
  if (accumulate) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c)
      dx[c] = narrow<T>(widen(dx[c]) + (widen(w[c]) * widen(d[c]) - mean_g - (widen(x[c]) - mean) * rstd * mean_gn) * rstd);
  } else {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c)
      dx[c] = narrow<T>((widen(w[c]) * widen(d[c]) - mean_g - (widen(x[c]) - mean) * rstd * mean_gn) * rstd);
  }
}

// One row of rmsnorm_backward, likewise.
template <class T>
[[gnu::noinline]] void rmsnorm_backward_row(T* dx, float* dw, const T* d, const T* x, const T* w, float rstd, int64_t columns,
                                            bool accumulate) {
  float product = 0.0f;
#pragma omp simd reduction(+ : product)
  for (int64_t c = 0; c < columns; ++c) {
    const float normal = widen(x[c]) * rstd, gradient = widen(d[c]);
    product += widen(w[c]) * gradient * normal;
    dw[c] += gradient * normal;
  }
  const float mean = product / static_cast<float>(columns);
  if (accumulate) {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = narrow<T>(widen(dx[c]) + (widen(w[c]) * widen(d[c]) - widen(x[c]) * rstd * mean) * rstd);
  } else {
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) dx[c] = narrow<T>((widen(w[c]) * widen(d[c]) - widen(x[c]) * rstd * mean) * rstd);
  }
}

template <class T>
void normalise(const nsp_layernorm_forward_args& a) {
  const Matrix<T> out(a.out);
  const Matrix<const T> x(a.x);
  const Vector<const T> weight(a.weight), bias(a.bias);
  const Vector<float> mean(a.mean), rstd(a.rstd);
  const float eps = a.eps;
  if (x.columns == 0) return;
  parallel_items("nsp layernorm", x.rows, 4 * x.columns, [=](int64_t n) {
    const Statistics s = layernorm_row(out.row(n), x.row(n), weight.data, bias.data, x.columns, eps);
    mean[n] = s.mean;
    rstd[n] = s.rstd;
  });
}

template <class T>
void normalise_backward(Context& context, const nsp_layernorm_backward_args& a) {
  const Matrix<T> dx(a.dx);
  const Matrix<const T> dout(a.dout), x(a.x);
  const Vector<const T> weight(a.weight);
  const Vector<const float> mean(a.mean), rstd(a.rstd);
  const int64_t columns = x.columns;
  const bool accumulate = a.accumulate_dx != 0;
  const RowBlocks blocks(x.rows);
  float* partial = context.scratch.floats(static_cast<std::size_t>(blocks.count * 2 * columns));  // dweight, then dbias
  parallel_items("nsp layernorm backward", blocks.count, 8 * blocks.per_block * columns, [=](int64_t block) {
    float* sums = partial + block * 2 * columns;
    std::fill(sums, sums + 2 * columns, 0.0f);
    const int64_t hi = std::min(x.rows, (block + 1) * blocks.per_block);
    for (int64_t n = block * blocks.per_block; n < hi; ++n) {
      layernorm_backward_row(dx.row(n), sums, sums + columns, dout.row(n), x.row(n), weight.data, mean[n], rstd[n], columns, accumulate);
    }
  });
  add_partial_sums(static_cast<float*>(a.dweight.data), partial, blocks.count, 2 * columns, columns);
  add_partial_sums(static_cast<float*>(a.dbias.data), partial + columns, blocks.count, 2 * columns, columns);
}

template <class T>
void normalise(const nsp_rmsnorm_forward_args& a) {
  const Matrix<T> out(a.out);
  const Matrix<const T> x(a.x);
  const Vector<const T> weight(a.weight);
  const Vector<float> rstd(a.rstd);
  const float eps = a.eps;
  if (x.columns == 0) return;
  parallel_items("nsp rmsnorm", x.rows, 3 * x.columns,
                 [=](int64_t n) { rstd[n] = rmsnorm_row(out.row(n), x.row(n), weight.data, x.columns, eps); });
}

template <class T>
void normalise_backward(Context& context, const nsp_rmsnorm_backward_args& a) {
  const Matrix<T> dx(a.dx);
  const Matrix<const T> dout(a.dout), x(a.x);
  const Vector<const T> weight(a.weight);
  const Vector<const float> rstd(a.rstd);
  const int64_t columns = x.columns;
  const bool accumulate = a.accumulate_dx != 0;
  const RowBlocks blocks(x.rows);
  float* partial = context.scratch.floats(static_cast<std::size_t>(blocks.count * columns));
  parallel_items("nsp rmsnorm backward", blocks.count, 6 * blocks.per_block * columns, [=](int64_t block) {
    float* sums = partial + block * columns;
    std::fill(sums, sums + columns, 0.0f);
    const int64_t hi = std::min(x.rows, (block + 1) * blocks.per_block);
    for (int64_t n = block * blocks.per_block; n < hi; ++n) {
      rmsnorm_backward_row(dx.row(n), sums, dout.row(n), x.row(n), weight.data, rstd[n], columns, accumulate);
    }
  });
  add_partial_sums(static_cast<float*>(a.dweight.data), partial, blocks.count, columns, columns);
}

}  // namespace

void layernorm_forward(Context&, const nsp_layernorm_forward_args& a) {
  with_element(a.x.dtype, [&](auto element) { normalise<decltype(element)>(a); });
}
void layernorm_backward(Context& context, const nsp_layernorm_backward_args& a) {
  with_element(a.x.dtype, [&](auto element) { normalise_backward<decltype(element)>(context, a); });
}
void rmsnorm_forward(Context&, const nsp_rmsnorm_forward_args& a) {
  with_element(a.x.dtype, [&](auto element) { normalise<decltype(element)>(a); });
}
void rmsnorm_backward(Context& context, const nsp_rmsnorm_backward_args& a) {
  with_element(a.x.dtype, [&](auto element) { normalise_backward<decltype(element)>(context, a); });
}

}  // namespace nsp::cpu::kernels
