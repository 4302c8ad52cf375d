// Matrix products and the gradient of a bias.
#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t m, n, k, gap;
};
constexpr Shape kShapes[] = {{1, 1, 1, 0},     {3, 5, 7, 0},      {3, 5, 7, 4},    {0, 5, 7, 0},     {3, 0, 7, 0},
                             {3, 5, 0, 0},     {1, 300, 65, 0},   {300, 1, 65, 2}, {64, 64, 64, 0},  {257, 130, 33, 0},
                             {70, 777, 96, 1}, {530, 270, 40, 0}, {9, 20, 700, 1}, {150, 70, 600, 0}};

Array transposed(const Array& a) {
  Array t({a.dim(1), a.dim(0)});
  for (int64_t i = 0; i < a.dim(0); ++i) {
    for (int64_t j = 0; j < a.dim(1); ++j) t(j, i) = a(i, j);
  }
  return t;
}

enum class Mode { plain, bias, accumulate };

// Dtypes of the factors and of the product.
struct Types {
  nsp_dtype in, out;
};

void matmul(Bench& bench, const Shape& s, Types types, bool transpose_a, bool transpose_b, Mode mode) {
  const Array a = stored(random_array({s.m, s.k}, 21), types.in), b = stored(random_array({s.k, s.n}, 22), types.in),
              bias = stored(random_array({s.n}, 23), types.in), before = random_array({s.m, s.n}, 24);
  Array expected({s.m, s.n});
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t j = 0; j < s.n; ++j) expected(i, j) += a(i, k) * b(k, j);
    }
    for (int64_t j = 0; j < s.n; ++j) expected(i, j) += mode == Mode::bias ? bias(j) : mode == Mode::accumulate ? before(i, j) : 0.0;
  }
  nsp_matmul_args args{};
  args.out = mode == Mode::accumulate ? bench.in(before, types.out, s.gap) : bench.out({s.m, s.n}, types.out, s.gap);
  args.a = bench.in(transpose_a ? transposed(a) : a, types.in, s.gap);
  args.b = bench.in(transpose_b ? transposed(b) : b, types.in, s.gap);
  if (mode == Mode::bias) args.bias = bench.in(bias, types.in);
  args.transpose_a = transpose_a;
  args.transpose_b = transpose_b;
  args.accumulate = mode == Mode::accumulate;
  bench.run(bench.ops().matmul, args);
  expect_near(bench.read(args.out), expected, bound(3e-6, types.out), "out");
}

// A product whose factors are both too large to be packed at once, against its columns in two halves.
void matmul_in_pieces(Bench& bench) {
  constexpr int64_t m = 482, n = 490, k = 4400, half = n / 2;
  nsp_matmul_args args{};
  args.a = bench.in(random_array({m, k}, 27));
  args.b = bench.in(random_array({n, k}, 28));
  args.transpose_b = 1;
  args.out = bench.out({m, n});
  bench.run(bench.ops().matmul, args);
  const Array whole = bench.read(args.out);
  args.b.size[0] = half;
  for (const int64_t first : {int64_t{0}, half}) {
    if (first != 0) args.b.data = static_cast<float*>(args.b.data) + first * k;
    args.out = bench.out({m, half});
    bench.run(bench.ops().matmul, args);
    Array expected({m, half});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < half; ++j) expected(i, j) = whole(i, first + j);
    }
    expect_near(bench.read(args.out), expected, bound(3e-6, NSP_F32), "out");
  }
}

void bias_gradient(Bench& bench, nsp_dtype type, int64_t rows, int64_t columns, int64_t gap) {
  const Array dout = stored(random_array({rows, columns}, 25), type);
  Array dbias = random_array({columns}, 26);
  nsp_bias_gradient_args a{};
  a.dout = bench.in(dout, type, gap);
  a.dbias = bench.in(dbias);
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t c = 0; c < columns; ++c) dbias(c) += dout(n, c);
  }
  bench.run(bench.ops().bias_gradient, a);
  expect_near(bench.read(a.dbias), dbias, 1e-6, "dbias");
}

}  // namespace

void add_matmul_cases(Cases& cases) {
  for (const Types types : {Types{NSP_F32, NSP_F32}, {NSP_BF16, NSP_BF16}, {NSP_BF16, NSP_F32}}) {
    const std::string end = suffix(types.in) + (types.in != types.out ? "_to_f32" : "");
    int number = 0;
    for (const Shape& s : kShapes) {
      const std::string id = std::to_string(number++);
      for (int bits = 0; bits < 4; ++bits) {
        const bool ta = (bits & 2) != 0, tb = (bits & 1) != 0;
        const std::string name = "matmul_" + id + (ta ? "_t" : "_n") + (tb ? "t" : "n") + end;
        cases.push_back({NSP_OP_matmul, name, [=](Bench& b) { matmul(b, s, types, ta, tb, Mode::plain); }, types.in});
        cases.push_back({NSP_OP_matmul, name + "_bias", [=](Bench& b) { matmul(b, s, types, ta, tb, Mode::bias); }, types.in});
        if (types.out == NSP_BF16) continue;
        cases.push_back({NSP_OP_matmul, name + "_accumulate", [=](Bench& b) { matmul(b, s, types, ta, tb, Mode::accumulate); }, types.in});
      }
    }
  }
  cases.push_back({NSP_OP_matmul, "matmul_in_pieces", matmul_in_pieces, NSP_F32});
  // So many terms that a factor is packed in several ranges of k.
  constexpr Shape kRanges{40, 49, 44100, 0};
  for (const Types types : {Types{NSP_F32, NSP_F32}, {NSP_BF16, NSP_BF16}}) {
    cases.push_back(
        {NSP_OP_matmul, "matmul_long" + suffix(types.in), [=](Bench& b) { matmul(b, kRanges, types, false, true, Mode::bias); }, types.in});
  }
  for (const nsp_dtype type : kTypes) {
    for (const Shape& s : {Shape{5, 7, 0, 0}, {5, 7, 0, 3}, {0, 4, 0, 0}, {3, 0, 0, 0}, {1, 1, 0, 0}, {400, 200, 0, 1}}) {
      const std::string name = "bias_gradient_" + std::to_string(s.m) + "_" + std::to_string(s.n) + "_" + std::to_string(s.gap);
      cases.push_back({NSP_OP_bias_gradient, name + suffix(type), [=](Bench& b) { bias_gradient(b, type, s.m, s.n, s.gap); }, type});
    }
  }
}

}  // namespace nsp_ops
