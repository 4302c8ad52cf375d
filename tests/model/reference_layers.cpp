#include "tests/model/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace nsp::test {
namespace {

// The slot of a gradient, made on first use.
Values& gradient(Params& gradients, const Params& params, const std::string& name) {
  Values& g = gradients[name];
  g.resize(params.at(name).size());
  return g;
}

// Probabilities of the keys that query t of (batch b, head h) sees; keys before `first` are not seen.
struct Row {
  int64_t first = 0;
  std::vector<double> p;  // of keys first ... t
};

// Where the channels of query head h, or of its key or value head, begin in the rows of q, k and v.
struct HeadColumns {
  int64_t q, k, v;
};
HeadColumns columns_of(const AttentionShape& s, int64_t h) {
  const int64_t g = h / (s.heads / s.groups());
  return {h * s.head_dim, (s.heads + g) * s.head_dim, (s.heads + s.groups() + g) * s.head_dim};
}

Row attention_row(const AttentionShape& s, const Values& qkv, int64_t b, int64_t h, int64_t t) {
  Row row;
  if (s.window > 0) row.first = std::max<int64_t>(row.first, t - s.window + 1);
  if (!s.document_start.empty()) row.first = std::max<int64_t>(row.first, s.document_start[static_cast<std::size_t>(b * s.tokens + t)]);
  const HeadColumns column = columns_of(s, h);
  const double* q = &qkv[static_cast<std::size_t>((b * s.tokens + t) * s.row() + column.q)];
  double largest = -INFINITY, total = 0;
  for (int64_t j = row.first; j <= t; ++j) {
    const double* k = &qkv[static_cast<std::size_t>((b * s.tokens + j) * s.row() + column.k)];
    double dot = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) dot += q[d] * k[d];
    row.p.push_back(dot / std::sqrt(static_cast<double>(s.head_dim)));
    largest = std::max(largest, row.p.back());
  }
  for (double& p : row.p) total += p = std::exp(p - largest);
  for (double& p : row.p) p /= total;
  return row;
}

Values attention_forward(const AttentionShape& s, const Values& qkv) {
  const int64_t width = s.heads * s.head_dim;
  Values out(static_cast<std::size_t>(s.batch * s.tokens * width));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.tokens; ++t) {
        const Row row = attention_row(s, qkv, b, h, t);
        for (int64_t j = row.first; j <= t; ++j)
          for (int64_t d = 0; d < s.head_dim; ++d)
            out[static_cast<std::size_t>((b * s.tokens + t) * width + h * s.head_dim + d)] +=
                row.p[static_cast<std::size_t>(j - row.first)] *
                qkv[static_cast<std::size_t>((b * s.tokens + j) * s.row() + columns_of(s, h).v + d)];
      }
  return out;
}

Values attention_backward(const AttentionShape& s, const Values& qkv, const Values& dout) {
  const int64_t width = s.heads * s.head_dim, D = s.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  Values dqkv(qkv.size());
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.tokens; ++t) {
        const Row row = attention_row(s, qkv, b, h, t);
        const HeadColumns column = columns_of(s, h);
        const auto at = [&](int64_t token, int64_t of_head) {
          return static_cast<std::size_t>((b * s.tokens + token) * s.row() + of_head);
        };
        const double* dy = &dout[static_cast<std::size_t>((b * s.tokens + t) * width + h * D)];
        std::vector<double> dp(row.p.size());
        double mean = 0;
        for (std::size_t i = 0; i < dp.size(); ++i) {
          const int64_t j = row.first + static_cast<int64_t>(i);
          for (int64_t d = 0; d < D; ++d) {
            dp[i] += dy[d] * qkv[at(j, column.v) + static_cast<std::size_t>(d)];
            dqkv[at(j, column.v) + static_cast<std::size_t>(d)] += row.p[i] * dy[d];
          }
          mean += row.p[i] * dp[i];
        }
        for (std::size_t i = 0; i < dp.size(); ++i) {
          const int64_t j = row.first + static_cast<int64_t>(i);
          const double ds = row.p[i] * (dp[i] - mean) * scale;
          for (std::size_t d = 0; d < static_cast<std::size_t>(D); ++d) {
            dqkv[at(t, column.q) + d] += ds * qkv[at(j, column.k) + d];
            dqkv[at(j, column.k) + d] += ds * qkv[at(t, column.q) + d];
          }
        }
      }
  return dqkv;
}

// Channels d and d + D/2 of every q and k head as a complex number, times exp(i sign position theta^(-2d/D)).
Values rotated(const AttentionShape& s, Values qkv, double sign) {
  const int64_t D = s.head_dim;
  for (int64_t n = 0; n < s.batch * s.tokens; ++n)
    for (int64_t h = 0; h < s.heads + s.groups(); ++h)
      for (int64_t d = 0; d < D / 2; ++d) {
        const double angle =
            sign * s.position[static_cast<std::size_t>(n)] * std::pow(s.rope_theta, -2 * static_cast<double>(d) / static_cast<double>(D));
        double& x = qkv[static_cast<std::size_t>(n * s.row() + h * D + d)];
        double& y = qkv[static_cast<std::size_t>(n * s.row() + h * D + d + D / 2)];
        const std::complex<double> turned = std::complex<double>(x, y) * std::polar(1.0, angle);
        x = turned.real();
        y = turned.imag();
      }
  return qkv;
}

}  // namespace

Layer linear_layer(const std::string& name, int64_t rows, int64_t in, int64_t out) {
  const auto N = static_cast<std::size_t>(rows), I = static_cast<std::size_t>(in), O = static_cast<std::size_t>(out);
  return {[=](const Params& params, const Values& x) {
            const Values& w = params.at(name + ".weight");
            const auto b = params.find(name + ".bias");
            Values y(N * O);
            for (std::size_t n = 0; n < N; ++n)
              for (std::size_t o = 0; o < O; ++o) {
                double sum = b == params.end() ? 0 : b->second[o];
                for (std::size_t i = 0; i < I; ++i) sum += w[o * I + i] * x[n * I + i];
                y[n * O + o] = sum;
              }
            return y;
          },
          [=](const Params& params, const Values& x, const Values& dy, Params& gradients) {
            const Values& w = params.at(name + ".weight");
            Values& dw = gradient(gradients, params, name + ".weight");
            Values* db = params.count(name + ".bias") ? &gradient(gradients, params, name + ".bias") : nullptr;
            Values dx(N * I);
            for (std::size_t n = 0; n < N; ++n)
              for (std::size_t o = 0; o < O; ++o) {
                if (db != nullptr) (*db)[o] += dy[n * O + o];
                for (std::size_t i = 0; i < I; ++i) {
                  dw[o * I + i] += dy[n * O + o] * x[n * I + i];
                  dx[n * I + i] += dy[n * O + o] * w[o * I + i];
                }
              }
            return dx;
          }};
}

Layer layernorm_layer(const std::string& name, int64_t rows, int64_t channels, double eps) {
  const auto N = static_cast<std::size_t>(rows), C = static_cast<std::size_t>(channels);
  const auto statistics = [=](const double* x) {
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < C; ++c) mean += x[c] / static_cast<double>(C);
    for (std::size_t c = 0; c < C; ++c) variance += (x[c] - mean) * (x[c] - mean) / static_cast<double>(C);
    return std::pair<double, double>(mean, 1 / std::sqrt(variance + eps));
  };
  return {[=](const Params& params, const Values& x) {
            const Values &w = params.at(name + ".weight"), &b = params.at(name + ".bias");
            Values y(x.size());
            for (std::size_t n = 0; n < N; ++n) {
              const auto [mean, rstd] = statistics(&x[n * C]);
              for (std::size_t c = 0; c < C; ++c) y[n * C + c] = (x[n * C + c] - mean) * rstd * w[c] + b[c];
            }
            return y;
          },
          [=](const Params& params, const Values& x, const Values& dy, Params& gradients) {
            const Values& w = params.at(name + ".weight");
            Values &dw = gradient(gradients, params, name + ".weight"), &db = gradient(gradients, params, name + ".bias");
            Values dx(x.size());
            for (std::size_t n = 0; n < N; ++n) {
              const auto [mean, rstd] = statistics(&x[n * C]);
              double sum = 0, dot = 0;  // means over the channels of g = dy w and of g * normalised x
              for (std::size_t c = 0; c < C; ++c) {
                const double normal = (x[n * C + c] - mean) * rstd, g = dy[n * C + c] * w[c];
                dw[c] += dy[n * C + c] * normal;
                db[c] += dy[n * C + c];
                sum += g / static_cast<double>(C);
                dot += g * normal / static_cast<double>(C);
              }
              for (std::size_t c = 0; c < C; ++c) dx[n * C + c] = rstd * (dy[n * C + c] * w[c] - sum - (x[n * C + c] - mean) * rstd * dot);
            }
            return dx;
          }};
}

Layer rmsnorm_layer(const std::string& name, int64_t rows, int64_t channels, double eps) {
  const auto N = static_cast<std::size_t>(rows), C = static_cast<std::size_t>(channels);
  const auto reciprocal = [=](const double* x) {
    double square = 0;
    for (std::size_t c = 0; c < C; ++c) square += x[c] * x[c] / static_cast<double>(C);
    return 1 / std::sqrt(square + eps);
  };
  return {[=](const Params& params, const Values& x) {
            const Values& w = params.at(name + ".weight");
            Values y(x.size());
            for (std::size_t n = 0; n < N; ++n) {
              const double r = reciprocal(&x[n * C]);
              for (std::size_t c = 0; c < C; ++c) y[n * C + c] = x[n * C + c] * r * w[c];
            }
            return y;
          },
          [=](const Params& params, const Values& x, const Values& dy, Params& gradients) {
            const Values& w = params.at(name + ".weight");
            Values& dw = gradient(gradients, params, name + ".weight");
            Values dx(x.size());
            for (std::size_t n = 0; n < N; ++n) {
              const double r = reciprocal(&x[n * C]);
              double dot = 0;  // mean over the channels of dy w * normalised x
              for (std::size_t c = 0; c < C; ++c) {
                dw[c] += dy[n * C + c] * x[n * C + c] * r;
                dot += dy[n * C + c] * w[c] * x[n * C + c] * r / static_cast<double>(C);
              }
              for (std::size_t c = 0; c < C; ++c) dx[n * C + c] = r * (dy[n * C + c] * w[c] - x[n * C + c] * r * dot);
            }
            return dx;
          }};
}

Layer swiglu_layer(int64_t rows, int64_t ffn) {
  const auto N = static_cast<std::size_t>(rows), F = static_cast<std::size_t>(ffn);
  return {[=](const Params&, const Values& x) {
            Values y(N * F);
            for (std::size_t n = 0; n < N; ++n)
              for (std::size_t f = 0; f < F; ++f) {
                const double gate = x[n * 2 * F + f], up = x[n * 2 * F + F + f];
                y[n * F + f] = gate / (1 + std::exp(-gate)) * up;
              }
            return y;
          },
          [=](const Params&, const Values& x, const Values& dy, Params&) {
            Values dx(N * 2 * F);
            for (std::size_t n = 0; n < N; ++n)
              for (std::size_t f = 0; f < F; ++f) {
                const double gate = x[n * 2 * F + f], up = x[n * 2 * F + F + f], s = 1 / (1 + std::exp(-gate));
                dx[n * 2 * F + f] = dy[n * F + f] * up * s * (1 + gate * (1 - s));
                dx[n * 2 * F + F + f] = dy[n * F + f] * gate * s;
              }
            return dx;
          }};
}

Layer rope_layer(const AttentionShape& shape) {
  return {[=](const Params&, const Values& x) { return rotated(shape, x, 1); },
          [=](const Params&, const Values&, const Values& dy, Params&) { return rotated(shape, dy, -1); }};
}

Layer gelu_layer() {
  const double a = std::sqrt(2 / std::numbers::pi), b = 0.044715;
  return {[=](const Params&, const Values& x) {
            Values y(x.size());
            for (std::size_t i = 0; i < x.size(); ++i) y[i] = 0.5 * x[i] * (1 + std::tanh(a * (x[i] + b * x[i] * x[i] * x[i])));
            return y;
          },
          [=](const Params&, const Values& x, const Values& dy, Params&) {
            Values dx(x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
              const double t = std::tanh(a * (x[i] + b * x[i] * x[i] * x[i]));
              dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * a * (1 + 3 * b * x[i] * x[i]));
            }
            return dx;
          }};
}

Layer attention_core_layer(const AttentionShape& shape) {
  return {[=](const Params&, const Values& x) { return attention_forward(shape, x); },
          [=](const Params&, const Values& x, const Values& dy, Params&) { return attention_backward(shape, x, dy); }};
}

Layer chain(Layer first, Layer second) {
  return {[=](const Params& params, const Values& x) { return second.forward(params, first.forward(params, x)); },
          [=](const Params& params, const Values& x, const Values& dy, Params& gradients) {
            return first.backward(params, x, second.backward(params, first.forward(params, x), dy, gradients), gradients);
          }};
}

Layer with_residual(Layer layer) {
  return {[=](const Params& params, const Values& x) {
            Values y = layer.forward(params, x);
            for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
            return y;
          },
          [=](const Params& params, const Values& x, const Values& dy, Params& gradients) {
            Values dx = layer.backward(params, x, dy, gradients);
            for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i];
            return dx;
          }};
}

Layer attention_layer(const std::string& name, const AttentionShape& shape, int64_t channels) {
  const int64_t rows = shape.batch * shape.tokens, width = shape.heads * shape.head_dim;
  const Layer qkv = linear_layer(name + ".qkv", rows, channels, shape.row());
  return chain(shape.rope_theta > 0 ? chain(qkv, rope_layer(shape)) : qkv,
               chain(attention_core_layer(shape), linear_layer(name + ".proj", rows, width, channels)));
}

Layer mlp_layer(const std::string& name, int64_t rows, int64_t channels, int64_t ffn) {
  return chain(linear_layer(name + ".fc", rows, channels, ffn), chain(gelu_layer(), linear_layer(name + ".proj", rows, ffn, channels)));
}

Layer gated_mlp_layer(const std::string& name, int64_t rows, int64_t channels, int64_t ffn) {
  return chain(linear_layer(name + ".gate_up", rows, channels, 2 * ffn),
               chain(swiglu_layer(rows, ffn), linear_layer(name + ".proj", rows, ffn, channels)));
}

Layer block_layer(const std::string& name, const AttentionShape& shape, int64_t channels, int64_t ffn, double eps) {
  const int64_t rows = shape.batch * shape.tokens;
  const bool llama = shape.rope_theta > 0;
  const auto norm = [&](const std::string& i) {
    return llama ? rmsnorm_layer(name + ".norm" + i, rows, channels, eps) : layernorm_layer(name + ".ln" + i, rows, channels, eps);
  };
  const Layer mlp = llama ? gated_mlp_layer(name + ".mlp", rows, channels, ffn) : mlp_layer(name + ".mlp", rows, channels, ffn);
  return chain(with_residual(chain(norm("1"), attention_layer(name + ".attn", shape, channels))), with_residual(chain(norm("2"), mlp)));
}

}  // namespace nsp::test
