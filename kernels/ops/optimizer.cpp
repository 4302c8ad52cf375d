// Optimizer updates. The same bits on every backend: compiled without contraction (cmake/cpu_backend.cmake), each
// expression in the order of nsp/backend.h.
#include <cmath>

#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu::kernels {

namespace {
constexpr int64_t kGrain = 16384;  // elements of one block
}

void adamw(Context&, const nsp_adamw_args& args) {
  const nsp_adamw_args s = args;
  float* weight = static_cast<float*>(s.weight.data);
  const float* gradient = static_cast<const float*>(s.gradient.data);
  float* moment1 = static_cast<float*>(s.moment1.data);
  float* moment2 = static_cast<float*>(s.moment2.data);
  const float lr = s.lr, beta1 = s.beta1, one_minus_beta1 = s.one_minus_beta1, beta2 = s.beta2, one_minus_beta2 = s.one_minus_beta2;
  const float eps = s.eps, weight_decay = s.weight_decay, correction1 = s.correction1, correction2 = s.correction2;
  const float gradient_scale = s.gradient_scale;
  parallel_blocks("nsp adamw", s.weight.size[0], kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) {
      const float g = gradient[i] * gradient_scale;
      const float m = beta1 * moment1[i] + one_minus_beta1 * g;
      const float v = beta2 * moment2[i] + (one_minus_beta2 * g) * g;
      const float w = weight[i];
      moment1[i] = m;
      moment2[i] = v;
      weight[i] = w - lr * ((m * correction1) / (std::sqrt(v * correction2) + eps) + weight_decay * w);
    }
  });
}

void sgd(Context&, const nsp_sgd_args& args) {
  float* weight = static_cast<float*>(args.weight.data);
  const float* gradient = static_cast<const float*>(args.gradient.data);
  float* momentum = static_cast<float*>(args.momentum.data);
  const float lr = args.lr, factor = args.momentum_factor, weight_decay = args.weight_decay, gradient_scale = args.gradient_scale;
  const bool nesterov = args.nesterov != 0;
  const int64_t n = args.weight.size[0];
  if (!present(args.momentum)) {
    parallel_blocks("nsp sgd", n, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
      for (int64_t i = lo; i < hi; ++i) {
        const float g = gradient[i] * gradient_scale + weight_decay * weight[i];
        weight[i] = weight[i] - lr * (nesterov ? g + factor * g : g);
      }
    });
    return;
  }
  parallel_blocks("nsp sgd", n, kGrain, [=](int64_t lo, int64_t hi, int64_t) {
#pragma omp simd
    for (int64_t i = lo; i < hi; ++i) {
      const float g = gradient[i] * gradient_scale + weight_decay * weight[i];
      const float b = factor * momentum[i] + g;
      momentum[i] = b;
      weight[i] = weight[i] - lr * (nesterov ? g + factor * b : b);
    }
  });
}

}  // namespace nsp::cpu::kernels
