// Sums over vectors, and the search for numbers that are none.
#include <limits>

#include "cases.hpp"

namespace nsp_ops {

namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 1000, 16384, 16385, 100003};

void sum(Bench& bench, int64_t n, nsp_dtype type, bool square, bool accumulate) {
  const Array x = stored(random_array({n}, 91), type);
  Array before({1}, 3.5), expected({1}, accumulate ? 3.5 : 0.0);
  for (double v : x.v) expected.v[0] += square ? v * v : v;
  nsp_tensor out = bench.in(before, NSP_F64);
  if (square) {
    nsp_sum_of_squares_args a{};
    a.out = out;
    a.x = bench.in(x, type);
    a.accumulate = accumulate;
    bench.run(bench.ops().sum_of_squares, a);
  } else {
    nsp_sum_args a{};
    a.out = out;
    a.x = bench.in(x, type);
    a.accumulate = accumulate;
    bench.run(bench.ops().sum, a);
  }
  // The sum may cancel: what counts is the error against the sum of magnitudes.
  EXPECT_NEAR(bench.read(out).v[0], expected.v[0], 1e-12 * (1.0 + static_cast<double>(n)));
}

void all_finite(Bench& bench, int64_t n, nsp_dtype type, int64_t bad_at, double bad_value) {
  Array x = stored(random_array({n}, 92, -1e38, 1e38), type), before({1}, 0.0);
  if (bad_at >= 0) x.v[static_cast<std::size_t>(bad_at)] = bad_value;
  nsp_all_finite_args a{};
  a.bad = bench.in(before, NSP_I32);
  a.x = bench.in(x, type);
  bench.run(bench.ops().all_finite, a);
  EXPECT_EQ(bench.read(a.bad).v[0], bad_at >= 0 ? 1.0 : 0.0);
}

void all_finite_keeps(Bench& bench) {
  nsp_all_finite_args a{};
  a.bad = bench.in(Array({1}, 1.0), NSP_I32);
  a.x = bench.in(random_array({50}, 93));
  bench.run(bench.ops().all_finite, a);
  EXPECT_EQ(bench.read(a.bad).v[0], 1.0) << "a flag that is set stays set";
}

}  // namespace

void add_reduce_cases(Cases& cases) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const nsp_dtype type : kTypes) {
    for (const int64_t n : kSizes) {
      const std::string id = std::to_string(n) + suffix(type);
      for (const bool accumulate : {false, true}) {
        const std::string name = (accumulate ? "accumulate_" : "") + id;
        cases.push_back({NSP_OP_sum, "sum_" + name, [=](Bench& b) { sum(b, n, type, false, accumulate); }, type});
        cases.push_back({NSP_OP_sum_of_squares, "sum_of_squares_" + name, [=](Bench& b) { sum(b, n, type, true, accumulate); }, type});
      }
      cases.push_back({NSP_OP_all_finite, "all_finite_" + id, [=](Bench& b) { all_finite(b, n, type, -1, 0.0); }, type});
      if (n == 0) continue;
      cases.push_back({NSP_OP_all_finite, "all_finite_nan_" + id, [=](Bench& b) { all_finite(b, n, type, n - 1, std::nan("")); }, type});
      cases.push_back({NSP_OP_all_finite, "all_finite_inf_" + id, [=](Bench& b) { all_finite(b, n, type, n / 2, -kInfinity); }, type});
    }
  }
  cases.push_back({NSP_OP_all_finite, "all_finite_keeps", all_finite_keeps});
}

}  // namespace nsp_ops
