#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Pattern {
  const char* name;
  std::vector<int64_t> shape, from, to;  // strides
};

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
      {"dense", {30}, {1}, {1}},
      {"one", {1}, {7}, {9}},
      {"empty", {3, 0, 2}, {0, 2, 1}, {0, 2, 1}},
      {"spread", {5}, {3}, {1}},
      {"transpose", {4, 6}, {6, 1}, {1, 4}},
      {"rows", {4, 6}, {9, 1}, {6, 1}},
      {"heads", {2, 3, 4, 5}, {60, 5, 15, 1}, {60, 20, 5, 1}},  // [B,T,H,D] out of [B,H,T,D]
      {"five", {2, 3, 2, 2, 3}, {36, 12, 6, 3, 1}, {1, 2, 6, 12, 24}},
      {"broadcast", {3, 4}, {0, 1}, {4, 1}},
      {"large", {70000}, {1}, {1}},
      {"large_rows", {300, 200}, {203, 1}, {200, 1}},
      {"large_transpose", {300, 200}, {1, 300}, {200, 1}},
  };
  return all;
}

void copy(Bench& bench, const Pattern& p, nsp_dtype dtype) {
  Array x = random_integers(p.shape, 81, 0, 100);
  for (std::size_t d = 0; d < p.from.size(); ++d) {  // a broadcast dimension holds one value for all its indices
    if (p.from[d] == 0 && x.size() > 0 && d == 0) {
      for (int64_t i = 1; i < x.dim(0); ++i) {
        for (int64_t j = 0; j < x.dim(1); ++j) x(i, j) = x(0, j);
      }
    }
  }
  nsp_copy_args a{};
  a.x = bench.in_strided(x, dtype, p.from);
  a.out = bench.out_strided(p.shape, dtype, p.to);
  bench.run(bench.ops().copy, a);
  expect_near(bench.read(a.out), x, 0.0, "out");
}

}  // namespace

void add_copy_cases(Cases& cases) {
  constexpr const char* kNames[] = {"f32", "bf16", "f64", "i32", "u8", "i64"};
  for (const Pattern& p : patterns()) {
    for (int dtype = NSP_F32; dtype <= NSP_I64; ++dtype) {
      cases.push_back({NSP_OP_copy, std::string("copy_") + p.name + "_" + kNames[dtype],
                       [&p, dtype](Bench& b) { copy(b, p, static_cast<nsp_dtype>(dtype)); }, static_cast<nsp_dtype>(dtype)});
    }
  }
}

}  // namespace nsp_ops
