#include <cblas.h>

#include "ops/gemm.hpp"

namespace nsp::cpu {

void cblas_tile(const Gemm& g, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, g.transpose_a ? CblasTrans : CblasNoTrans, g.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(g.m),
              static_cast<int>(g.n), static_cast<int>(g.k), 1.0f, a, static_cast<int>(g.lda), b, static_cast<int>(g.ldb), g.beta, c,
              static_cast<int>(g.ldc));
}

}  // namespace nsp::cpu
