// Ops that change state element by element. They give the same bits on every backend, so this file is compiled without
// contraction (cmake/cpu_backend.cmake), and each expression stands in the order of nsp/backend.h.
#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

constexpr int64_t kGrain = 32768;  // elements of one block

template <class To, class From>
void convert(const nsp_cast_args& a) {
  const Vector<const From> x(a.x);
  const Vector<To> out(a.out);
  parallel_blocks("nsp cast", x.size, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) out.data[i] = narrow<To>(widen(x.data[i]));
  });
}

template <class Y, class X>
void add_scaled(const nsp_axpy_args& args) {
  const Vector<Y> y(args.y);
  const Vector<const X> x(args.x);
  const float a = args.a;
  parallel_blocks("nsp axpy", x.size, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) y.data[i] = narrow<Y>(widen(y.data[i]) + a * widen(x.data[i]));
  });
}

template <class T>
void scale_by(const nsp_scale_args& args) {
  const Vector<T> x(args.x);
  const float a = args.a;
  parallel_blocks("nsp scale", x.size, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) x.data[i] = narrow<T>(widen(x.data[i]) * a);
  });
}

template <class T>
void interpolate(const nsp_lerp_args& args) {
  const Vector<T> out(args.out);  // may be base or x: element i is read before it is written
  const Vector<const T> base(args.base), x(args.x), origin(args.origin);
  const float weight = args.weight;
  parallel_blocks("nsp lerp", x.size, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) out.data[i] = narrow<T>(widen(base.data[i]) + weight * (widen(x.data[i]) - widen(origin.data[i])));
  });
}

}  // namespace

void cast(Context&, const nsp_cast_args& a) {
  if (a.x.dtype == NSP_F32) {
    convert<Bf16, float>(a);
  } else {
    convert<float, Bf16>(a);
  }
}

void scale(Context&, const nsp_scale_args& a) {
  with_element(a.x.dtype, [&](auto element) { scale_by<decltype(element)>(a); });
}

void axpy(Context&, const nsp_axpy_args& a) {
  with_element(a.x.dtype, [&](auto x) { with_element(a.y.dtype, [&](auto y) { add_scaled<decltype(y), decltype(x)>(a); }); });
}

void lerp(Context&, const nsp_lerp_args& a) {
  with_element(a.x.dtype, [&](auto element) { interpolate<decltype(element)>(a); });
}

}  // namespace nsp::cpu::kernels
