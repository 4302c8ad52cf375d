// LayerNorm and RMSNorm.
#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t n, channels, gap;
};
constexpr Shape kShapes[] = {{3, 5, 0}, {3, 5, 3}, {1, 1, 0}, {0, 8, 0}, {4, 0, 0}, {7, 64, 0}, {130, 768, 0}, {101, 129, 5}};
constexpr double kEps = 1e-5;

struct Norm {
  Array out, mean, rstd;
};

// subtract_mean: layernorm; else rmsnorm, where mean stays 0 and there is no bias.
Norm reference(const Array& x, const Array& weight, const Array& bias, bool subtract_mean) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Norm r{Array({rows, columns}), Array({rows}), Array({rows})};
  for (int64_t n = 0; n < rows && columns > 0; ++n) {
    double mean = 0.0, squares = 0.0;
    for (int64_t c = 0; c < columns && subtract_mean; ++c) mean += x(n, c) / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c) squares += (x(n, c) - mean) * (x(n, c) - mean) / static_cast<double>(columns);
    r.mean(n) = mean;
    r.rstd(n) = 1.0 / std::sqrt(squares + kEps);
    for (int64_t c = 0; c < columns; ++c) r.out(n, c) = (x(n, c) - mean) * r.rstd(n) * weight(c) + (subtract_mean ? bias(c) : 0.0);
  }
  return r;
}

struct Gradients {
  Array dx, dweight, dbias;
};

Gradients reference_backward(const Array& dout, const Array& x, const Array& weight, const Norm& kept, bool subtract_mean) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Gradients r{Array({rows, columns}), Array({columns}), Array({columns})};
  for (int64_t n = 0; n < rows; ++n) {
    double mean_g = 0.0, mean_gn = 0.0;
    for (int64_t c = 0; c < columns; ++c) {
      const double normal = (x(n, c) - kept.mean(n)) * kept.rstd(n), g = dout(n, c) * weight(c);
      if (subtract_mean) mean_g += g / static_cast<double>(columns);
      mean_gn += g * normal / static_cast<double>(columns);
      r.dweight(c) += dout(n, c) * normal;
      r.dbias(c) += dout(n, c);
    }
    for (int64_t c = 0; c < columns; ++c) {
      const double normal = (x(n, c) - kept.mean(n)) * kept.rstd(n);
      r.dx(n, c) = (dout(n, c) * weight(c) - mean_g - normal * mean_gn) * kept.rstd(n);
    }
  }
  return r;
}

struct Inputs {
  Array x, weight, bias, dout;
  Inputs(const Shape& s, nsp_dtype type)
      : x(stored(random_array({s.n, s.channels}, 11, -2.0, 3.0), type)),
        weight(stored(random_array({s.channels}, 12), type)),
        bias(stored(random_array({s.channels}, 13), type)),
        dout(stored(random_array({s.n, s.channels}, 14), type)) {}
};

void prove(const Shape& s, bool subtract_mean) {
  Inputs in(s, NSP_F32);
  const Gradients g = reference_backward(in.dout, in.x, in.weight, reference(in.x, in.weight, in.bias, subtract_mean), subtract_mean);
  const auto loss = [&] { return dot(reference(in.x, in.weight, in.bias, subtract_mean).out, in.dout); };
  expect_gradient(in.x, g.dx, loss, "dx");
  expect_gradient(in.weight, g.dweight, loss, "dweight");
  if (subtract_mean) expect_gradient(in.bias, g.dbias, loss, "dbias");
}

void layernorm_forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Inputs in(s, type);
  const Norm expected = reference(in.x, in.weight, in.bias, true);
  nsp_layernorm_forward_args a{};
  a.out = bench.out({s.n, s.channels}, type, s.gap);
  a.x = bench.in(in.x, type, s.gap);
  a.weight = bench.in(in.weight, type);
  a.bias = bench.in(in.bias, type);
  a.mean = bench.out({s.n});
  a.rstd = bench.out({s.n});
  a.eps = static_cast<float>(kEps);
  bench.run(bench.ops().layernorm_forward, a);
  expect_near(bench.read(a.out), expected.out, bound(1e-6, type), "out");
  if (s.channels == 0) return;  // statistics of nothing
  expect_near(bench.read(a.mean), expected.mean, 1e-6, "mean");
  expect_near(bench.read(a.rstd), expected.rstd, 3e-6, "rstd");
}

void layernorm_backward(Bench& bench, const Shape& s, nsp_dtype type, bool accumulate, bool in_place) {
  const Inputs in(s, type);
  const Norm kept = reference(in.x, in.weight, in.bias, true);
  Gradients expected = reference_backward(in.dout, in.x, in.weight, kept, true);
  const Array dx = stored(random_array({s.n, s.channels}, 15), type), dweight = random_array({s.channels}, 16),
              dbias = random_array({s.channels}, 17);
  for (std::size_t i = 0; i < dx.v.size() && accumulate; ++i) expected.dx.v[i] += dx.v[i];
  for (std::size_t i = 0; i < dweight.v.size(); ++i) {
    expected.dweight.v[i] += dweight.v[i];
    expected.dbias.v[i] += dbias.v[i];
  }
  nsp_layernorm_backward_args a{};
  a.dout = bench.in(in.dout, type, s.gap);
  a.dx = in_place ? a.dout : bench.in(dx, type, s.gap);
  a.dweight = bench.in(dweight);
  a.dbias = bench.in(dbias);
  a.x = bench.in(in.x, type, s.gap);
  a.weight = bench.in(in.weight, type);
  a.mean = bench.in(kept.mean);
  a.rstd = bench.in(kept.rstd);
  a.accumulate_dx = accumulate;
  bench.run(bench.ops().layernorm_backward, a);
  expect_near(bench.read(a.dx), expected.dx, bound(2e-6, type), "dx", 1.0);  // of one channel dx is 0
  expect_near(bench.read(a.dweight), expected.dweight, 2e-6, "dweight");
  expect_near(bench.read(a.dbias), expected.dbias, 2e-6, "dbias");
}

void rmsnorm_forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Inputs in(s, type);
  const Norm expected = reference(in.x, in.weight, in.bias, false);
  nsp_rmsnorm_forward_args a{};
  a.out = bench.out({s.n, s.channels}, type, s.gap);
  a.x = bench.in(in.x, type, s.gap);
  a.weight = bench.in(in.weight, type);
  a.rstd = bench.out({s.n});
  a.eps = static_cast<float>(kEps);
  bench.run(bench.ops().rmsnorm_forward, a);
  expect_near(bench.read(a.out), expected.out, bound(1e-6, type), "out");
  if (s.channels > 0) expect_near(bench.read(a.rstd), expected.rstd, 3e-6, "rstd");
}

void rmsnorm_backward(Bench& bench, const Shape& s, nsp_dtype type, bool accumulate, bool in_place) {
  const Inputs in(s, type);
  const Norm kept = reference(in.x, in.weight, in.bias, false);
  Gradients expected = reference_backward(in.dout, in.x, in.weight, kept, false);
  const Array dx = stored(random_array({s.n, s.channels}, 15), type), dweight = random_array({s.channels}, 16);
  for (std::size_t i = 0; i < dx.v.size() && accumulate; ++i) expected.dx.v[i] += dx.v[i];
  for (std::size_t i = 0; i < dweight.v.size(); ++i) expected.dweight.v[i] += dweight.v[i];
  nsp_rmsnorm_backward_args a{};
  a.dout = bench.in(in.dout, type, s.gap);
  a.dx = in_place ? a.dout : bench.in(dx, type, s.gap);
  a.dweight = bench.in(dweight);
  a.x = bench.in(in.x, type, s.gap);
  a.weight = bench.in(in.weight, type);
  a.rstd = bench.in(kept.rstd);
  a.accumulate_dx = accumulate;
  bench.run(bench.ops().rmsnorm_backward, a);
  expect_near(bench.read(a.dx), expected.dx, bound(2e-6, type), "dx", 1.0);  // of one channel dx is 0
  expect_near(bench.read(a.dweight), expected.dweight, 2e-6, "dweight");
}

}  // namespace

void add_norm_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    int number = 0;
    for (const Shape& s : kShapes) {
      const std::string id = std::to_string(number++) + suffix(type);
      cases.push_back({NSP_OP_layernorm_forward, "layernorm_forward_" + id, [=](Bench& b) { layernorm_forward(b, s, type); }, type});
      cases.push_back({NSP_OP_rmsnorm_forward, "rmsnorm_forward_" + id, [=](Bench& b) { rmsnorm_forward(b, s, type); }, type});
      for (const bool accumulate : {false, true}) {
        const std::string name = (accumulate ? "accumulate_" : "") + id;
        cases.push_back({NSP_OP_layernorm_backward, "layernorm_backward_" + name,
                         [=](Bench& b) { layernorm_backward(b, s, type, accumulate, false); }, type});
        cases.push_back({NSP_OP_rmsnorm_backward, "rmsnorm_backward_" + name,
                         [=](Bench& b) { rmsnorm_backward(b, s, type, accumulate, false); }, type});
      }
    }
    const Shape s = kShapes[7];
    cases.push_back({NSP_OP_layernorm_backward, "layernorm_backward_in_place" + suffix(type),
                     [=](Bench& b) { layernorm_backward(b, s, type, false, true); }, type});
    cases.push_back({NSP_OP_rmsnorm_backward, "rmsnorm_backward_in_place" + suffix(type),
                     [=](Bench& b) { rmsnorm_backward(b, s, type, false, true); }, type});
  }
  cases.push_back({NSP_OP_layernorm_backward, "layernorm_reference", [](Bench&) { prove(kShapes[0], true); }});
  cases.push_back({NSP_OP_rmsnorm_backward, "rmsnorm_reference", [](Bench&) { prove(kShapes[0], false); }});
}

}  // namespace nsp_ops
