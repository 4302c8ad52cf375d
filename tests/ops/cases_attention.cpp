#include <limits>

#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  const char* name;
  int64_t b, t, s, h, g, d;
  bool causal;
  int64_t offset, window;
  bool documents;
  int64_t gap;
};

constexpr Shape kShapes[] = {
    {"small", 2, 5, 5, 4, 4, 8, true, 0, 0, false, 0},
    {"grouped", 2, 5, 5, 4, 2, 8, true, 0, 0, false, 0},
    {"gaps", 2, 5, 5, 4, 2, 8, true, 0, 0, true, 3},
    {"odd_head", 1, 7, 7, 3, 1, 5, true, 0, 0, false, 1},
    {"full", 2, 4, 9, 2, 1, 3, false, 0, 0, false, 0},
    {"window", 1, 9, 9, 2, 2, 4, true, 0, 3, false, 0},
    {"window_full", 1, 9, 9, 2, 2, 4, false, 0, 3, false, 0},
    {"documents", 2, 9, 9, 2, 2, 4, true, 0, 0, true, 0},
    {"all_masks", 2, 9, 12, 2, 1, 4, true, 3, 4, true, 2},
    {"decode", 1, 1, 130, 4, 2, 16, true, 129, 0, false, 0},
    {"offset", 1, 3, 10, 2, 2, 4, true, 7, 0, false, 0},
    {"sees_nothing", 1, 6, 4, 2, 1, 4, true, -3, 0, false, 0},
    {"no_keys", 1, 3, 0, 2, 1, 4, true, 0, 0, false, 0},
    {"no_queries", 1, 0, 3, 2, 1, 4, true, 0, 0, false, 0},
    {"no_batch", 0, 3, 3, 2, 1, 4, true, 0, 0, false, 0},
    {"no_head_size", 1, 3, 3, 2, 1, 0, true, 0, 0, false, 0},
    {"one", 1, 1, 1, 1, 1, 1, true, 0, 0, false, 0},
    {"blocks", 1, 150, 150, 2, 1, 64, true, 0, 0, false, 0},
    {"blocks_masks", 1, 131, 200, 2, 2, 24, true, 69, 70, true, 5},
    {"blocks_full", 1, 97, 129, 2, 1, 32, false, 0, 0, false, 0},
};

struct Inputs {
  Array q, k, v, dout, start;
  double scale;
  Inputs(const Shape& s, nsp_dtype type)
      : q(stored(random_array({s.b, s.t, s.h, s.d}, 41, -2.0, 2.0), type)),
        k(stored(random_array({s.b, s.s, s.g, s.d}, 42, -2.0, 2.0), type)),
        v(stored(random_array({s.b, s.s, s.g, s.d}, 43), type)),
        dout(stored(random_array({s.b, s.t, s.h, s.d}, 44), type)),
        start({s.b, s.t}),
        scale(1.0 / std::sqrt(std::max(1.0, static_cast<double>(s.d)))) {
    // Documents of five tokens; a start of query t is never after its own position, save one that then sees nothing.
    for (int64_t b = 0; b < s.b; ++b) {
      for (int64_t t = 0; t < s.t; ++t) start(b, t) = static_cast<double>((s.offset + t + b) / 5 * 5 - b);
    }
    if (start.size() > 2) start.v[2] = static_cast<double>(s.s + 5);
  }
};

bool seen(const Shape& s, const Inputs& in, int64_t b, int64_t t, int64_t key) {
  const int64_t position = s.offset + t;
  return (!s.causal || key <= position) && (s.window == 0 || key > position - s.window) &&
         (!s.documents || static_cast<double>(key) >= in.start(b, t));
}

// Probabilities of one query row, and its log-sum-exp.
std::vector<double> probabilities(const Shape& s, const Inputs& in, int64_t b, int64_t t, int64_t h, double& lse) {
  const int64_t g = h / (s.h / s.g);
  std::vector<double> p(static_cast<std::size_t>(s.s), 0.0);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (int64_t key = 0; key < s.s; ++key) {
    double score = 0.0;
    for (int64_t d = 0; d < s.d; ++d) score += in.q(b, t, h, d) * in.k(b, key, g, d);
    p[static_cast<std::size_t>(key)] = score * in.scale;
    if (seen(s, in, b, t, key)) largest = std::max(largest, score * in.scale);
  }
  for (int64_t key = 0; key < s.s; ++key) {
    double& x = p[static_cast<std::size_t>(key)];
    x = seen(s, in, b, t, key) ? std::exp(x - largest) : 0.0;
    sum += x;
  }
  for (double& x : p) x = sum > 0.0 ? x / sum : 0.0;
  lse = sum > 0.0 ? largest + std::log(sum) : -std::numeric_limits<double>::infinity();
  return p;
}

struct Output {
  Array out, lse;
};

Output reference(const Shape& s, const Inputs& in) {
  Output r{Array({s.b, s.t, s.h, s.d}), Array({s.b, s.h, s.t})};
  for (int64_t b = 0; b < s.b; ++b) {
    for (int64_t h = 0; h < s.h; ++h) {
      for (int64_t t = 0; t < s.t; ++t) {
        const std::vector<double> p = probabilities(s, in, b, t, h, r.lse(b, h, t));
        for (int64_t key = 0; key < s.s; ++key) {
          for (int64_t d = 0; d < s.d; ++d) r.out(b, t, h, d) += p[static_cast<std::size_t>(key)] * in.v(b, key, h / (s.h / s.g), d);
        }
      }
    }
  }
  return r;
}

struct Gradients {
  Array dq, dk, dv;
};

// delta = rowsum(dout * out) with the output as the forward stored it, which is what a backend gets.
Gradients reference_backward(const Shape& s, const Inputs& in, const Array& out) {
  Gradients r{Array(in.q.shape), Array(in.k.shape), Array(in.v.shape)};
  for (int64_t b = 0; b < s.b; ++b) {
    for (int64_t h = 0; h < s.h; ++h) {
      const int64_t g = h / (s.h / s.g);
      for (int64_t t = 0; t < s.t; ++t) {
        double lse = 0.0, delta = 0.0;
        const std::vector<double> p = probabilities(s, in, b, t, h, lse);
        std::vector<double> dp(p.size(), 0.0);
        for (int64_t key = 0; key < s.s; ++key) {
          const auto i = static_cast<std::size_t>(key);
          for (int64_t d = 0; d < s.d; ++d) {
            dp[i] += in.dout(b, t, h, d) * in.v(b, key, g, d);
            r.dv(b, key, g, d) += p[i] * in.dout(b, t, h, d);
          }
        }
        for (int64_t d = 0; d < s.d; ++d) delta += in.dout(b, t, h, d) * out(b, t, h, d);
        for (int64_t key = 0; key < s.s; ++key) {
          const double ds = p[static_cast<std::size_t>(key)] * (dp[static_cast<std::size_t>(key)] - delta) * in.scale;
          for (int64_t d = 0; d < s.d; ++d) {
            r.dq(b, t, h, d) += ds * in.k(b, key, g, d);
            r.dk(b, key, g, d) += ds * in.q(b, t, h, d);
          }
        }
      }
    }
  }
  return r;
}

void prove(const Shape& s) {
  Inputs in(s, NSP_F32);
  const Gradients g = reference_backward(s, in, reference(s, in).out);
  const auto loss = [&] { return dot(reference(s, in).out, in.dout); };
  expect_gradient(in.q, g.dq, loss, "dq");
  expect_gradient(in.k, g.dk, loss, "dk");
  expect_gradient(in.v, g.dv, loss, "dv");
}

template <class Args>
void set_mask(Bench& bench, Args& a, const Shape& s, const Inputs& in) {
  if (s.documents) a.document_start = bench.in(in.start, NSP_I32, s.gap);
  a.scale = static_cast<float>(in.scale);
  a.causal = s.causal;
  a.query_offset = s.offset;
  a.window = s.window;
}

void forward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Inputs in(s, type);
  const Output expected = reference(s, in);
  nsp_attention_forward_args a{};
  a.out = bench.out(in.q.shape, type, s.gap);
  a.lse = bench.out({s.b, s.h, s.t}, NSP_F32, s.gap);
  a.q = bench.in(in.q, type, s.gap);
  a.k = bench.in(in.k, type, s.gap);
  a.v = bench.in(in.v, type, s.gap);
  set_mask(bench, a, s, in);
  bench.run(bench.ops().attention_forward, a);
  expect_near(bench.read(a.out), expected.out, bound(3e-6, type), "out");
  expect_near(bench.read(a.lse), expected.lse, 3e-6, "lse");
}

void backward(Bench& bench, const Shape& s, nsp_dtype type) {
  const Inputs in(s, type);
  Output kept = reference(s, in);
  kept.out = stored(std::move(kept.out), type);
  const Gradients expected = reference_backward(s, in, kept.out);
  nsp_attention_backward_args a{};
  a.dq = bench.out(in.q.shape, type, s.gap);
  a.dk = bench.out(in.k.shape, type, s.gap);
  a.dv = bench.out(in.v.shape, type, s.gap);
  a.dout = bench.in(in.dout, type, s.gap);
  a.q = bench.in(in.q, type, s.gap);
  a.k = bench.in(in.k, type, s.gap);
  a.v = bench.in(in.v, type, s.gap);
  a.out = bench.in(kept.out, type, s.gap);
  a.lse = bench.in(kept.lse, NSP_F32, s.gap);
  set_mask(bench, a, s, in);
  bench.run(bench.ops().attention_backward, a);
  expect_near(bench.read(a.dq), expected.dq, bound(1e-5, type), "dq");
  expect_near(bench.read(a.dk), expected.dk, bound(1e-5, type), "dk");
  expect_near(bench.read(a.dv), expected.dv, bound(1e-5, type), "dv");
}

// Keys that no query may see are not there yet in a cache: whatever lies in them must not get into the result.
void unseen_garbage(Bench& bench, nsp_dtype type) {
  Shape s = kShapes[0];
  s.s = 9;
  Inputs in(s, type);
  const Output expected = reference(s, in);
  for (int64_t b = 0; b < s.b; ++b) {
    for (int64_t key = s.t; key < s.s; ++key) {
      for (int64_t g = 0; g < s.g; ++g) {
        for (int64_t d = 0; d < s.d; ++d) in.k(b, key, g, d) = in.v(b, key, g, d) = std::numeric_limits<double>::quiet_NaN();
      }
    }
  }
  nsp_attention_forward_args a{};
  a.out = bench.out(in.q.shape, type);
  a.lse = bench.out({s.b, s.h, s.t});
  a.q = bench.in(in.q, type);
  a.k = bench.in(in.k, type);
  a.v = bench.in(in.v, type);
  set_mask(bench, a, s, in);
  bench.run(bench.ops().attention_forward, a);
  expect_near(bench.read(a.out), expected.out, bound(3e-6, type), "out");
}

}  // namespace

void add_attention_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    for (const Shape& s : kShapes) {
      const std::string id = s.name + suffix(type);
      cases.push_back({NSP_OP_attention_forward, "attention_forward_" + id, [=](Bench& b) { forward(b, s, type); }, type});
      cases.push_back({NSP_OP_attention_backward, "attention_backward_" + id, [=](Bench& b) { backward(b, s, type); }, type});
    }
    cases.push_back(
        {NSP_OP_attention_forward, "attention_forward_unseen_garbage" + suffix(type), [=](Bench& b) { unseen_garbage(b, type); }, type});
  }
  for (const std::size_t i : {1, 3, 5, 8, 11}) {
    const Shape s = kShapes[i];
    cases.push_back({NSP_OP_attention_backward, std::string("attention_reference_") + s.name, [s](Bench&) { prove(s); }});
  }
}

}  // namespace nsp_ops
