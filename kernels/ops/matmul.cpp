// out (+)= op(a) op(b) + bias, tile by tile. See ops/gemm.hpp for the seam and ops/matmul_table.cpp for the choices.
#include <algorithm>
#include <array>

#include "ops/gemm.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

// Stride of a matrix for BLAS, which wants at least one full row even where there is but one.
int64_t row_stride(const nsp_tensor& t) {
  return std::max<int64_t>({t.size[0] > 1 ? t.stride[0] : t.size[1], t.size[1], 1});
}

// A tile starts as the bias, to which the product is added: libraries scale the old C anyway, so this costs nothing more.
void start_with(const float* bias, float* c, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = c + i * stride;
    if (bias == nullptr) {
      std::fill(row, row + columns, 0.0f);
    } else {
      std::copy_n(bias, columns, row);
    }
  }
}

struct Product {
  Gemm whole;
  const float *a, *b, *bias;
  float* c;
  Tile tile;
  int64_t columns;  // of tiles

  Gemm part(int64_t i, int64_t j) const {
    Gemm g = whole;
    g.m = std::min(tile.m, whole.m - i);
    g.n = std::min(tile.n, whole.n - j);
    return g;
  }
  // compute(gemm, a, b, c) for one tile.
  template <class F>
  void run(int64_t index, const F& compute) const {
    const int64_t i = index / columns * tile.m, j = index % columns * tile.n;
    const Gemm g = part(i, j);
    float* target = c + i * whole.ldc + j;
    if (bias != nullptr || whole.k == 0) {
      if (bias != nullptr || whole.beta == 0.0f) start_with(bias == nullptr ? nullptr : bias + j, target, g.m, g.n, whole.ldc);
      if (whole.k == 0) return;
    }
    compute(g, a + (whole.transpose_a ? i : i * whole.lda), b + (whole.transpose_b ? j * whole.ldb : j), target);
  }
};

}  // namespace

void matmul(Context& context, const nsp_matmul_args& args) {
  Product p;
  p.whole.m = args.out.size[0];
  p.whole.n = args.out.size[1];
  p.whole.k = args.a.size[args.transpose_a ? 0 : 1];
  if (p.whole.m == 0 || p.whole.n == 0) return;
  p.whole.transpose_a = args.transpose_a != 0;
  p.whole.transpose_b = args.transpose_b != 0;
  p.whole.lda = row_stride(args.a);
  p.whole.ldb = row_stride(args.b);
  p.whole.ldc = row_stride(args.out);
  p.a = static_cast<const float*>(args.a.data);
  p.b = static_cast<const float*>(args.b.data);
  p.bias = present(args.bias) ? static_cast<const float*>(args.bias.data) : nullptr;
  p.c = static_cast<float*>(args.out.data);
  p.whole.beta = args.accumulate ? 1.0f : 0.0f;
  GemmCache& cache = *context.gemm;
  p.tile = choose_tile(p.whole);
  p.columns = (p.whole.n + p.tile.n - 1) / p.tile.n;
  const int64_t rows = (p.whole.m + p.tile.m - 1) / p.tile.m;
  const GemmLibrary library = choose_library(p.whole, cache.set, OnednnKernels::available());
  Gemm with_bias = p.whole;  // how a tile looks to the library: it adds to the bias that stands there already
  if (p.bias != nullptr) with_bias.beta = 1.0f;

  if (library == GemmLibrary::cblas || p.whole.k == 0) {
    parallel_tasks(context, "nsp matmul", rows * p.columns, 0, [&](int64_t index, float*) {
      p.run(index, [&](Gemm g, const float* a, const float* b, float* c) {
        g.beta = with_bias.beta;
        cblas_tile(g, a, b, c);
      });
    });
    return;
  }
  // At most four shapes of tile: inner, last column, last row, corner. Made here, since making is not for the pool.
  cache.onednn.make_room();
  std::array<int, 4> kernels{};
  for (int edge = 0; edge < 4; ++edge) {
    Gemm g = p.part((edge & 2) ? (rows - 1) * p.tile.m : 0, (edge & 1) ? (p.columns - 1) * p.tile.n : 0);
    g.beta = with_bias.beta;
    kernels[static_cast<std::size_t>(edge)] = cache.onednn.prepare(g);
  }
  parallel_tasks(context, "nsp matmul", rows * p.columns, 0, [&](int64_t index, float*) {
    const int edge = (index / p.columns == rows - 1 ? 2 : 0) | (index % p.columns == p.columns - 1 ? 1 : 0);
    p.run(index, [&](const Gemm&, const float* a, const float* b, float* c) {
      cache.onednn.run(kernels[static_cast<std::size_t>(edge)], a, b, c);
    });
  });
}

}  // namespace nsp::cpu::kernels
