// Ops that promise the same bits on every backend, against scalar code that is compiled without optimisation and without
// contraction (CMakeLists.txt), with denormals flushed as in every compute thread.
#include <bit>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cases.hpp"

namespace nsp_ops {

namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 33, 1000, 70001};

class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040u);
  }
  ~FlushDenormals() {
    _mm_setcsr(before_);
  }

 private:
  unsigned before_;
#endif
};

using Floats = std::vector<float>;

Floats floats(const Array& a) {
  return Floats(a.v.begin(), a.v.end());
}

Floats rounded(Floats values, nsp_dtype dtype) {
  for (float& v : values) v = nsp_ops::rounded(v, dtype);
  return values;
}

void expect_bits(Bench& bench, const nsp_tensor& t, const Floats& expected, const char* what) {
  const std::vector<uint32_t> got = bench.read_bits(t);
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(std::bit_cast<float>(got[i]))) continue;  // which NaN is not promised
    ASSERT_EQ(got[i], std::bit_cast<uint32_t>(expected[i]))
        << what << ", element " << i << ": " << std::bit_cast<float>(got[i]) << " instead of " << expected[i];
  }
}

// Values over many magnitudes, with some that are special.
Array wide(int64_t n, unsigned seed) {
  Array a = random_array({n}, seed);
  for (int64_t i = 0; i < n; ++i) {
    double& x = a.v[static_cast<std::size_t>(i)];
    x = static_cast<double>(static_cast<float>(x * std::pow(10.0, static_cast<double>(i % 21) - 10.0)));
    if (i % 97 == 13) x = 0.0;
    if (i % 101 == 14) x = -0.0;
    if (i % 103 == 15) x = std::numeric_limits<double>::infinity();
    if (i % 107 == 16) x = std::nan("");
    if (i % 109 == 17) x = 1e-40;
    if (i % 113 == 18) x = -3e38;
  }
  return a;
}

void scale(Bench& bench, int64_t n, nsp_dtype type) {
  const Array x = stored(wide(n, 101), type);
  nsp_scale_args a{};
  a.x = bench.in(x, type);
  a.a = 0.3f;
  bench.run(bench.ops().scale, a);
  Floats expected = floats(x);
  const FlushDenormals flush;
  for (float& v : expected) v = v * a.a;
  expect_bits(bench, a.x, rounded(expected, type), "x");
}

void axpy(Bench& bench, int64_t n, nsp_dtype x_type, nsp_dtype y_type) {
  const Array x = stored(wide(n, 102), x_type), y = stored(wide(n, 103), y_type);
  nsp_axpy_args a{};
  a.x = bench.in(x, x_type);
  a.y = bench.in(y, y_type);
  a.a = -0.7f;
  bench.run(bench.ops().axpy, a);
  const Floats in = floats(x);
  Floats expected = floats(y);
  const FlushDenormals flush;
  for (std::size_t i = 0; i < in.size(); ++i) expected[i] = expected[i] + a.a * in[i];
  expect_bits(bench, a.y, rounded(expected, y_type), "y");
}

// alias: 0 none, 1 out is base, 2 out is x, 3 base is origin.
void lerp(Bench& bench, int64_t n, nsp_dtype type, int alias) {
  const Array base = stored(wide(n, 104), type), x = stored(wide(n, 105), type), origin = alias == 3 ? base : stored(wide(n, 106), type);
  nsp_lerp_args a{};
  a.base = bench.in(base, type);
  a.x = bench.in(x, type);
  a.origin = alias == 3 ? a.base : bench.in(origin, type);
  a.out = alias == 1 ? a.base : alias == 2 ? a.x : bench.out({n}, type);
  a.weight = 0.375f;
  bench.run(bench.ops().lerp, a);
  const Floats b = floats(base), v = floats(x), o = floats(origin);
  Floats expected(b.size());
  const FlushDenormals flush;
  for (std::size_t i = 0; i < b.size(); ++i) expected[i] = b[i] + a.weight * (v[i] - o[i]);
  expect_bits(bench, a.out, rounded(expected, type), "out");
}

// Identical replicas stay identical: weight * (x - x) adds nothing.
void lerp_of_equals(Bench& bench) {
  const Array x = random_array({1000}, 107);
  nsp_lerp_args a{};
  a.base = bench.in(x);
  a.x = bench.in(x);
  a.origin = a.base;
  a.out = bench.out({1000});
  a.weight = 0.3333f;
  bench.run(bench.ops().lerp, a);
  expect_bits(bench, a.out, floats(x), "out");
}

void adamw(Bench& bench, int64_t n) {
  nsp_adamw_args a{};
  Floats w = floats(random_array({n}, 111)), g = floats(wide(n, 112)), m = floats(random_array({n}, 113)),
         v = floats(random_array({n}, 114, 0.0, 2.0));
  for (float& x : g) x = std::isfinite(x) ? x : 1.5f;
  Array weight({n}), gradient({n}), moment1({n}), moment2({n});
  std::copy(w.begin(), w.end(), weight.v.begin());
  std::copy(g.begin(), g.end(), gradient.v.begin());
  std::copy(m.begin(), m.end(), moment1.v.begin());
  std::copy(v.begin(), v.end(), moment2.v.begin());
  a.weight = bench.in(weight);
  a.gradient = bench.in(gradient);
  a.moment1 = bench.in(moment1);
  a.moment2 = bench.in(moment2);
  a.lr = 3e-4f, a.beta1 = 0.9f, a.one_minus_beta1 = static_cast<float>(1.0 - 0.9), a.beta2 = 0.95f,
  a.one_minus_beta2 = static_cast<float>(1.0 - 0.95);
  a.eps = 1e-8f, a.weight_decay = 0.1f, a.gradient_scale = 0.0117f;
  for (int step = 1; step <= 5; ++step) {
    a.correction1 = static_cast<float>(1.0 / (1.0 - std::pow(0.9, step)));
    a.correction2 = static_cast<float>(1.0 / (1.0 - std::pow(0.95, step)));
    bench.run(bench.ops().adamw, a);
    const FlushDenormals flush;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float scaled = g[i] * a.gradient_scale;
      m[i] = a.beta1 * m[i] + a.one_minus_beta1 * scaled;
      v[i] = a.beta2 * v[i] + (a.one_minus_beta2 * scaled) * scaled;
      w[i] = w[i] - a.lr * ((m[i] * a.correction1) / (std::sqrt(v[i] * a.correction2) + a.eps) + a.weight_decay * w[i]);
    }
  }
  expect_bits(bench, a.weight, w, "weight");
  expect_bits(bench, a.moment1, m, "moment1");
  expect_bits(bench, a.moment2, v, "moment2");
}

void sgd(Bench& bench, int64_t n, bool with_momentum, bool nesterov) {
  const Array weight = random_array({n}, 121), gradient = wide(n, 122), momentum = random_array({n}, 123);
  nsp_sgd_args a{};
  a.weight = bench.in(weight);
  a.gradient = bench.in(gradient);
  if (with_momentum) a.momentum = bench.in(momentum);
  a.lr = 0.05f, a.momentum_factor = 0.9f, a.weight_decay = 0.01f, a.gradient_scale = 0.37f;
  a.nesterov = nesterov;
  bench.run(bench.ops().sgd, a);
  Floats w = floats(weight), b = floats(momentum);
  const Floats in = floats(gradient);
  const FlushDenormals flush;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float g = in[i] * a.gradient_scale + a.weight_decay * w[i];
    b[i] = with_momentum ? a.momentum_factor * b[i] + g : g;
    w[i] = w[i] - a.lr * (nesterov ? g + a.momentum_factor * b[i] : b[i]);
  }
  expect_bits(bench, a.weight, w, "weight");
  if (with_momentum) expect_bits(bench, a.momentum, b, "momentum");
}

// Every bf16 pattern widens exactly.
void cast_to_f32(Bench& bench) {
  Array x({65536});
  std::vector<float> expected(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    expected[i] = std::bit_cast<float>(i << 16);
    x.v[i] = static_cast<double>(expected[i]);
  }
  nsp_cast_args a{};
  a.x = bench.in(x, NSP_BF16);
  a.out = bench.out({65536});
  bench.run(bench.ops().cast, a);
  expect_bits(bench, a.out, expected, "out");
}

// To nearest, ties to even; infinities kept, NaN never turned into one.
void cast_to_bf16(Bench& bench, int64_t n) {
  Array x = wide(n, 131);
  if (n > 900) {
    const uint32_t special[] = {0x3f808000u, 0x3f818000u, 0x3f807fffu, 0x3f808001u, 0x7f7fffffu,
                                0x7f7f8000u, 0x7f7f7fffu, 0xff800000u, 0x80000000u};
    for (std::size_t i = 0; i < std::size(special); ++i) x.v[i] = static_cast<double>(std::bit_cast<float>(special[i]));
  }
  nsp_cast_args a{};
  a.x = bench.in(x);
  a.out = bench.out({n}, NSP_BF16);
  bench.run(bench.ops().cast, a);
  const Array got = bench.read(a.out);
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const float value = static_cast<float>(x.v[i]);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(got.v[i])) << i;
      continue;
    }
    ASSERT_EQ(got.v[i], static_cast<double>(nsp_ops::rounded(value, NSP_BF16))) << "element " << i << " from " << value;
  }
}

// Decaying moments must not linger as denormals, which cost a hundred cycles each.
void flushed(Bench& bench) {
  nsp_scale_args a{};
  a.x = bench.in(Array({100000}, 1.5e-38));
  a.a = 0.01f;
  bench.run(bench.ops().scale, a);
  expect_bits(bench, a.x, Floats(100000, 0.0f), "x");
}

}  // namespace

void add_bits_cases(Cases& cases) {
  for (const int64_t n : kSizes) {
    const std::string id = std::to_string(n);
    for (const nsp_dtype type : kTypes) {
      cases.push_back({NSP_OP_scale, "scale_" + id + suffix(type), [=](Bench& b) { scale(b, n, type); }, type});
      cases.push_back({NSP_OP_axpy, "axpy_" + id + suffix(type), [=](Bench& b) { axpy(b, n, type, type); }, type});
      for (int alias = 0; alias < 4; ++alias) {
        cases.push_back(
            {NSP_OP_lerp, "lerp_" + id + "_" + std::to_string(alias) + suffix(type), [=](Bench& b) { lerp(b, n, type, alias); }, type});
      }
    }
    cases.push_back({NSP_OP_axpy, "axpy_" + id + "_bf16_to_f32", [n](Bench& b) { axpy(b, n, NSP_BF16, NSP_F32); }, NSP_BF16});
    cases.push_back({NSP_OP_adamw, "adamw_" + id, [n](Bench& b) { adamw(b, n); }});
    cases.push_back({NSP_OP_sgd, "sgd_" + id, [n](Bench& b) { sgd(b, n, false, false); }});
    cases.push_back({NSP_OP_sgd, "sgd_momentum_" + id, [n](Bench& b) { sgd(b, n, true, false); }});
    cases.push_back({NSP_OP_sgd, "sgd_nesterov_" + id, [n](Bench& b) { sgd(b, n, true, true); }});
    cases.push_back({NSP_OP_cast, "cast_to_bf16_" + id, [n](Bench& b) { cast_to_bf16(b, n); }});
  }
  cases.push_back({NSP_OP_cast, "cast_to_f32", cast_to_f32, NSP_BF16});
  cases.push_back({NSP_OP_lerp, "lerp_of_equals", lerp_of_equals});
  cases.push_back({NSP_OP_scale, "scale_flushes_denormals", flushed});
}

}  // namespace nsp_ops
