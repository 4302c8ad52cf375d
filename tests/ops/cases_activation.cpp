// GELU and SwiGLU.
#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t n, channels, gap;
};
constexpr Shape kShapes[] = {{3, 7, 0}, {3, 7, 2}, {0, 4, 0}, {4, 0, 0}, {1, 1, 0}, {60, 257, 1}};

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double k = std::sqrt(2.0 / M_PI), t = std::tanh(k * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * k * (1.0 + 3.0 * 0.044715 * x * x);
}
double silu(double x) {
  return x / (1.0 + std::exp(-x));
}
double silu_slope(double x) {
  const double s = 1.0 / (1.0 + std::exp(-x));
  return s + x * s * (1.0 - s);
}

// f of every element of up to three arrays.
template <class F>
Array map(const Array& shape, F f) {
  Array r(shape.shape);
  for (std::size_t i = 0; i < r.v.size(); ++i) r.v[i] = f(i);
  return r;
}

void gelu_forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Array x = stored(random_array({s.n, s.channels}, 51, -12.0, 12.0), type);
  nsp_gelu_forward_args a{};
  a.x = bench.in(x, type, s.gap);
  a.out = bench.out(x.shape, type, s.gap);
  bench.run(bench.ops().gelu_forward, a);
  expect_relative(bench.read(a.out), map(x, [&](std::size_t i) { return gelu(x.v[i]); }), bound(1e-6, type), 1e-6, "out");
}

void gelu_backward(Bench& bench, const Shape& s, nsp_dtype type, bool in_place) {
  const Array x = stored(random_array({s.n, s.channels}, 52, -12.0, 12.0), type), dout = stored(random_array(x.shape, 53), type);
  nsp_gelu_backward_args a{};
  a.x = bench.in(x, type, s.gap);
  a.dout = bench.in(dout, type, s.gap);
  a.dx = in_place ? a.dout : bench.out(x.shape, type, s.gap);
  bench.run(bench.ops().gelu_backward, a);
  expect_relative(bench.read(a.dx), map(x, [&](std::size_t i) { return dout.v[i] * gelu_slope(x.v[i]); }), bound(1e-6, type), 1e-6, "dx");
}

void swiglu_forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Array gate = stored(random_array({s.n, s.channels}, 54, -20.0, 20.0), type), up = stored(random_array(gate.shape, 55), type);
  nsp_swiglu_forward_args a{};
  a.gate = bench.in(gate, type, s.gap);
  a.up = bench.in(up, type, s.gap);
  a.out = bench.out(gate.shape, type, s.gap);
  bench.run(bench.ops().swiglu_forward, a);
  expect_relative(bench.read(a.out), map(gate, [&](std::size_t i) { return silu(gate.v[i]) * up.v[i]; }), bound(1e-6, type), 1e-9, "out");
}

void swiglu_backward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Array gate = stored(random_array({s.n, s.channels}, 56, -20.0, 20.0), type), up = stored(random_array(gate.shape, 57), type),
              dout = stored(random_array(gate.shape, 58), type);
  nsp_swiglu_backward_args a{};
  a.gate = bench.in(gate, type, s.gap);
  a.up = bench.in(up, type, s.gap);
  a.dout = bench.in(dout, type, s.gap);
  a.dgate = bench.out(gate.shape, type, s.gap);
  a.dup = bench.out(gate.shape, type, s.gap);
  bench.run(bench.ops().swiglu_backward, a);
  expect_relative(bench.read(a.dgate), map(gate, [&](std::size_t i) { return dout.v[i] * up.v[i] * silu_slope(gate.v[i]); }),
                  bound(1e-6, type), 1e-6, "dgate");
  expect_relative(bench.read(a.dup), map(gate, [&](std::size_t i) { return dout.v[i] * silu(gate.v[i]); }), bound(1e-6, type), 1e-9, "dup");
}

void prove() {
  Array x = random_array({1, 40}, 59, -4.0, 4.0);
  const Array dout = random_array(x.shape, 60), up = random_array(x.shape, 61);
  expect_gradient(
      x, map(x, [&](std::size_t i) { return dout.v[i] * gelu_slope(x.v[i]); }),
      [&] { return dot(map(x, [&](std::size_t i) { return gelu(x.v[i]); }), dout); }, "gelu");
  expect_gradient(
      x, map(x, [&](std::size_t i) { return dout.v[i] * up.v[i] * silu_slope(x.v[i]); }),
      [&] { return dot(map(x, [&](std::size_t i) { return silu(x.v[i]) * up.v[i]; }), dout); }, "swiglu");
}

// Far from zero the results are 0 or x, not NaN; a NaN stays one.
void extremes(Bench& bench) {
  Array x({1, 6});
  x.v = {-1e4, 1e4, -100.0, 100.0, 0.0, std::nan("")};
  nsp_gelu_forward_args a{};
  a.x = bench.in(x);
  a.out = bench.out(x.shape);
  bench.run(bench.ops().gelu_forward, a);
  Array expected({1, 6});
  expected.v = {0.0, 1e4, 0.0, 100.0, 0.0, std::nan("")};
  expect_near(bench.read(a.out), expected, 1e-7, "out");
}

}  // namespace

void add_activation_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    int number = 0;
    for (const Shape& s : kShapes) {
      std::string id = std::to_string(number++);
      id += suffix(type);
      cases.push_back({NSP_OP_gelu_forward, "gelu_forward_" + id, [=](Bench& b) { gelu_forward(b, s, type); }, type});
      cases.push_back({NSP_OP_gelu_backward, "gelu_backward_" + id, [=](Bench& b) { gelu_backward(b, s, type, false); }, type});
      cases.push_back({NSP_OP_gelu_backward, "gelu_backward_in_place_" + id, [=](Bench& b) { gelu_backward(b, s, type, true); }, type});
      cases.push_back({NSP_OP_swiglu_forward, "swiglu_forward_" + id, [=](Bench& b) { swiglu_forward(b, s, type); }, type});
      cases.push_back({NSP_OP_swiglu_backward, "swiglu_backward_" + id, [=](Bench& b) { swiglu_backward(b, s, type); }, type});
    }
  }
  cases.push_back({NSP_OP_gelu_backward, "activation_reference", [](Bench&) { prove(); }});
  cases.push_back({NSP_OP_gelu_forward, "gelu_extremes", extremes});
}

}  // namespace nsp_ops
