// out (+)= op(a) op(b) + bias. See ops/gemm.hpp for the seam and ops/matmul_table.cpp for the choices.
#include <algorithm>
#include <array>
#include <type_traits>

#include "ops/element.hpp"
#include "ops/gemm.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/packed_gemm.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

// Stride of a matrix for BLAS, which wants at least one full row even where there is but one.
int64_t row_stride(const nsp_tensor& t) {
  return std::max<int64_t>({t.size[0] > 1 ? t.stride[0] : t.size[1], t.size[1], 1});
}

Gemm whole_product(const nsp_matmul_args& args) {
  Gemm g{};
  g.m = args.out.size[0];
  g.n = args.out.size[1];
  g.k = args.a.size[args.transpose_a ? 0 : 1];
  g.transpose_a = args.transpose_a != 0;
  g.transpose_b = args.transpose_b != 0;
  g.lda = row_stride(args.a);
  g.ldb = row_stride(args.b);
  g.ldc = row_stride(args.out);
  g.beta = args.accumulate ? 1.0f : 0.0f;
  g.bf16_factors = args.a.dtype == NSP_BF16;
  g.bf16_result = args.out.dtype == NSP_BF16;
  return g;
}

// A tile starts as the bias, to which the product is added: libraries scale the old C anyway, so this costs nothing more,
// and the bias is exact in either dtype.
template <class In, class Out>
void start_with(const In* bias, Out* c, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    Out* row = c + i * stride;
    if (bias == nullptr) {
      std::fill(row, row + columns, Out{});
    } else {
      for (int64_t j = 0; j < columns; ++j) row[j] = narrow<Out>(widen(bias[j]));
    }
  }
}

template <class In, class Out>
struct Product {
  Gemm whole;
  const In *a, *b, *bias;
  Out* c;

  explicit Product(const nsp_matmul_args& args)
      : whole(whole_product(args)),
        a(static_cast<const In*>(args.a.data)),
        b(static_cast<const In*>(args.b.data)),
        bias(present(args.bias) ? static_cast<const In*>(args.bias.data) : nullptr),
        c(static_cast<Out*>(args.out.data)) {}
};

// For libraries.
template <class In, class Out>
struct TiledProduct : Product<In, Out> {
  using Product<In, Out>::whole, Product<In, Out>::a, Product<In, Out>::b, Product<In, Out>::bias, Product<In, Out>::c;
  Tile tile;
  int64_t rows, columns;  // of tiles

  explicit TiledProduct(const Product<In, Out>& product)
      : Product<In, Out>(product),
        tile(choose_tile(whole)),
        rows((whole.m + tile.m - 1) / tile.m),
        columns((whole.n + tile.n - 1) / tile.n) {}

  // The tile at row i and column j. What the library sees: with a bias it adds to what stands there already.
  Gemm part(int64_t i, int64_t j) const {
    Gemm g = whole;
    g.m = std::min(tile.m, whole.m - i);
    g.n = std::min(tile.n, whole.n - j);
    if (bias != nullptr) g.beta = 1.0f;
    return g;
  }
  // compute(gemm, a, b, c) for one tile.
  template <class F>
  void run(int64_t index, const F& compute) const {
    const int64_t i = index / columns * tile.m, j = index % columns * tile.n;
    const Gemm g = part(i, j);
    Out* target = c + i * whole.ldc + j;
    if (bias != nullptr) start_with(bias + j, target, g.m, g.n, whole.ldc);
    compute(g, a + (whole.transpose_a ? i : i * whole.lda), b + (whole.transpose_b ? j * whole.ldb : j), target);
  }
};

void multiply_with_blas(Context& context, const TiledProduct<float, float>& p) {
  parallel_tasks(context, "nsp matmul", p.rows * p.columns, 0, [&](int64_t index, float*) { p.run(index, cblas_tile); });
}

// By oneDNN, which has a kernel for each of at most four shapes of tile: inner, last column, last row, corner. They are made
// here, since making is not for the pool. False: it has none, nothing was done.
template <class In, class Out>
bool multiply_with_kernels(Context& context, const TiledProduct<In, Out>& p) {
  OnednnKernels& onednn = context.gemm->onednn;
  onednn.make_room();
  std::array<int, 4> kernels{};
  for (int edge = 0; edge < 4; ++edge) {
    const Gemm g = p.part((edge & 2) ? (p.rows - 1) * p.tile.m : 0, (edge & 1) ? (p.columns - 1) * p.tile.n : 0);
    kernels[static_cast<std::size_t>(edge)] = onednn.prepare(g);
    if (kernels[static_cast<std::size_t>(edge)] < 0) return false;
  }
  parallel_tasks(context, "nsp matmul", p.rows * p.columns, 0, [&](int64_t index, float*) {
    const int edge = (index / p.columns == p.rows - 1 ? 2 : 0) | (index % p.columns == p.columns - 1 ? 1 : 0);
    p.run(index, [&](const Gemm&, const In* a, const In* b, Out* c) { onednn.run(kernels[static_cast<std::size_t>(edge)], a, b, c); });
  });
  return true;
}

template <class In, class Out>
void multiply(Context& context, const nsp_matmul_args& args) {
  const Product<In, Out> p(args);
  if (p.whole.k == 0) {
    if (p.bias != nullptr || p.whole.beta == 0.0f) start_with(p.bias, p.c, p.whole.m, p.whole.n, p.whole.ldc);
    return;
  }
  const GemmLibrary library = choose_library(p.whole, context.gemm->set);
  if constexpr (std::is_same_v<In, float>) {
    if (library == GemmLibrary::cblas) return multiply_with_blas(context, TiledProduct<In, Out>(p));
  }
  if (library == GemmLibrary::onednn && multiply_with_kernels(context, TiledProduct<In, Out>(p))) return;
  packed_gemm(context, p.whole, p.a, p.b, p.bias, p.c);
}

}  // namespace

void matmul(Context& context, const nsp_matmul_args& args) {
  if (args.out.size[0] == 0 || args.out.size[1] == 0) return;
  if (args.a.dtype == NSP_F32) {
    multiply<float, float>(context, args);
  } else {
    with_element(args.out.dtype, [&](auto element) { multiply<Bf16, decltype(element)>(context, args); });
  }
}

}  // namespace nsp::cpu::kernels
