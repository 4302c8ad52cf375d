// Several CPU modules in one process, each built for another instruction set and run with another number of threads: ops that
// change state leave the same bits in whole buffers, so ranks on different modules do not drift apart.
#include <bit>
#include <limits>

#include "cases.hpp"

namespace nsp_ops {

namespace {

constexpr int64_t kSizes[] = {1, 7, 255, 4099, 70001};

std::vector<const Backend*> processor_backends() {
  std::vector<const Backend*> result;
  for (const Backend& backend : backends()) {
    if (backend.name.rfind("cpu", 0) == 0) result.push_back(&backend);
  }
  return result;
}

// Numbers of all magnitudes: ordinary ones, denormals and their neighbours, and ones that overflow in the next operation.
Array numbers(int64_t n, unsigned seed, bool positive = false) {
  constexpr double kScales[] = {1.0, 1e-3, 1e4, 1e-39, 1.3e-38, 1e-44, 1e38, 3.4e38, 0.0, 1e-20};
  Array a = random_array({n}, seed);
  for (int64_t i = 0; i < n; ++i) {
    double& x = a.v[static_cast<std::size_t>(i)];
    x = static_cast<double>(static_cast<float>(x * kScales[(i + seed) % std::size(kScales)]));
    if (positive) x = std::abs(x);
  }
  return a;
}

using Bits = std::vector<std::vector<uint32_t>>;  // of each tensor that an op wrote
using Op = std::function<Bits(Bench&, int64_t n)>;

Bits scale(Bench& bench, int64_t n, nsp_dtype type) {
  nsp_scale_args a{};
  a.x = bench.in(stored(numbers(n, 1), type), type);
  a.a = 1.7f;
  bench.run(bench.ops().scale, a);
  return {bench.read_bits(a.x)};
}

Bits axpy(Bench& bench, int64_t n, nsp_dtype y, nsp_dtype x) {
  nsp_axpy_args a{};
  a.y = bench.in(stored(numbers(n, 2), y), y);
  a.x = bench.in(stored(numbers(n, 3), x), x);
  a.a = -0.37f;
  bench.run(bench.ops().axpy, a);
  return {bench.read_bits(a.y)};
}

Bits lerp(Bench& bench, int64_t n, nsp_dtype type) {
  nsp_lerp_args a{};
  a.base = bench.in(stored(numbers(n, 4), type), type);
  a.x = bench.in(stored(numbers(n, 5), type), type);
  a.origin = bench.in(stored(numbers(n, 6), type), type);
  a.out = bench.out({n}, type);
  a.weight = 0.3f;
  bench.run(bench.ops().lerp, a);
  return {bench.read_bits(a.out)};
}

Bits cast(Bench& bench, int64_t n, nsp_dtype to) {
  const nsp_dtype from = to == NSP_F32 ? NSP_BF16 : NSP_F32;
  nsp_cast_args a{};
  a.x = bench.in(stored(numbers(n, 7), from), from);
  a.out = bench.out({n}, to);
  bench.run(bench.ops().cast, a);
  return {bench.read_bits(a.out)};
}

Bits adamw(Bench& bench, int64_t n) {
  nsp_adamw_args a{};
  a.weight = bench.in(numbers(n, 8));
  a.gradient = bench.in(numbers(n, 9));
  a.moment1 = bench.in(numbers(n, 10));
  a.moment2 = bench.in(numbers(n, 11, true));
  a.lr = 3e-4f, a.beta1 = 0.9f, a.one_minus_beta1 = 0.1f, a.beta2 = 0.95f, a.one_minus_beta2 = 0.05f;
  a.eps = 1e-8f, a.weight_decay = 0.1f, a.correction1 = 1.9f, a.correction2 = 3.1f, a.gradient_scale = 0.0117f;
  for (int step = 0; step < 3; ++step) bench.run(bench.ops().adamw, a);
  return {bench.read_bits(a.weight), bench.read_bits(a.moment1), bench.read_bits(a.moment2)};
}

Bits sgd(Bench& bench, int64_t n, bool momentum) {
  nsp_sgd_args a{};
  a.weight = bench.in(numbers(n, 12));
  a.gradient = bench.in(numbers(n, 13));
  if (momentum) a.momentum = bench.in(numbers(n, 14));
  a.lr = 0.05f, a.momentum_factor = 0.9f, a.weight_decay = 0.01f, a.gradient_scale = 0.37f, a.nesterov = momentum;
  for (int step = 0; step < 3; ++step) bench.run(bench.ops().sgd, a);
  Bits result{bench.read_bits(a.weight)};
  if (momentum) result.push_back(bench.read_bits(a.momentum));
  return result;
}

bool same(uint32_t a, uint32_t b) {
  return a == b || (std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b)));  // which NaN is not promised
}

void expect_equal(const Bits& got, const Bits& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t t = 0; t < got.size(); ++t) {
    ASSERT_EQ(got[t].size(), expected[t].size());
    for (std::size_t i = 0; i < got[t].size(); ++i) {
      ASSERT_TRUE(same(got[t][i], expected[t][i]))
          << "tensor " << t << ", element " << i << ": " << std::hex << got[t][i] << " and " << expected[t][i];
    }
  }
}

TEST(Modules, StateChangingOpsHaveEqualBits) {
  const std::vector<const Backend*> modules = processor_backends();
  if (modules.size() < 2) GTEST_SKIP() << "NSP_PLUGIN_PATH holds one CPU module that runs here; configure with NSP_CPU_ARCHS of several";
  const std::pair<const char*, Op> ops[] = {
      {"scale", [](Bench& b, int64_t n) { return scale(b, n, NSP_F32); }},
      {"scale bf16", [](Bench& b, int64_t n) { return scale(b, n, NSP_BF16); }},
      {"axpy", [](Bench& b, int64_t n) { return axpy(b, n, NSP_F32, NSP_F32); }},
      {"axpy bf16", [](Bench& b, int64_t n) { return axpy(b, n, NSP_BF16, NSP_BF16); }},
      {"axpy bf16 to fp32", [](Bench& b, int64_t n) { return axpy(b, n, NSP_F32, NSP_BF16); }},
      {"lerp", [](Bench& b, int64_t n) { return lerp(b, n, NSP_F32); }},
      {"lerp bf16", [](Bench& b, int64_t n) { return lerp(b, n, NSP_BF16); }},
      {"cast to bf16", [](Bench& b, int64_t n) { return cast(b, n, NSP_BF16); }},
      {"cast to fp32", [](Bench& b, int64_t n) { return cast(b, n, NSP_F32); }},
      {"adamw", adamw},
      {"sgd", [](Bench& b, int64_t n) { return sgd(b, n, false); }},
      {"sgd with momentum", [](Bench& b, int64_t n) { return sgd(b, n, true); }},
  };
  for (const auto& [name, op] : ops) {
    for (const int64_t n : kSizes) {
      Bench first(*modules[0]);
      const Bits expected = op(first, n);
      for (std::size_t m = 1; m < modules.size(); ++m) {
        SCOPED_TRACE(std::string(name) + ", " + std::to_string(n) + " elements, " + modules[m]->name + " against " + modules[0]->name);
        Bench bench(*modules[m]);
        expect_equal(op(bench, n), expected);
      }
    }
  }
}

}  // namespace
}  // namespace nsp_ops
