#include "cases.hpp"

namespace nsp_ops {

namespace {

struct Shape {
  int64_t n, vocabulary, padded, gap;
};
constexpr Shape kShapes[] = {{4, 7, 7, 0}, {4, 7, 10, 3},      {0, 5, 5, 0},       {1, 1, 1, 0},
                             {3, 1, 4, 0}, {9, 2049, 2112, 1}, {40, 3000, 3008, 0}};

struct Result {
  Array losses, gradient;
};

Result reference(const Array& logits, const Array& targets, int64_t vocabulary, double gradient_scale) {
  Result r{Array({logits.dim(0)}), Array(logits.shape)};
  for (int64_t n = 0; n < logits.dim(0); ++n) {
    if (targets(n) < 0) continue;
    double largest = logits(n, 0), sum = 0.0;
    for (int64_t v = 0; v < vocabulary; ++v) largest = std::max(largest, logits(n, v));
    for (int64_t v = 0; v < vocabulary; ++v) sum += std::exp(logits(n, v) - largest);
    r.losses(n) = largest + std::log(sum) - logits(n, targets(n));
    for (int64_t v = 0; v < vocabulary; ++v) r.gradient(n, v) = std::exp(logits(n, v) - largest) / sum * gradient_scale;
    r.gradient(n, targets(n)) -= gradient_scale;
  }
  return r;
}

void classifier(Bench& bench, const Shape& s, nsp_dtype type, bool write, double range) {
  const Array logits = stored(random_array({s.n, s.padded}, 71, -range, range), type);
  const Array targets = random_integers({s.n}, 72, -1, s.vocabulary);  // some are -1: not counted
  constexpr double kScale = 0.125;
  const Result expected = reference(logits, targets, s.vocabulary, kScale);
  nsp_classifier_args a{};
  a.logits = bench.in(logits, type, s.gap);
  a.targets = bench.in(targets, NSP_I32);
  a.losses = bench.out({s.n});
  a.vocabulary = s.vocabulary;
  a.gradient_scale = static_cast<float>(kScale);
  a.write_gradient = write;
  bench.run(bench.ops().classifier, a);
  expect_relative(bench.read(a.losses), expected.losses, 1e-6, 1e-6, "losses");
  const Array after = bench.read(a.logits);
  if (write) {
    expect_relative(after, expected.gradient, bound(1e-6, type), 2e-8, "gradient");
  } else {
    expect_near(after, logits, 0.0, "logits, which were to stay");
  }
}

void prove() {
  Array logits = random_array({3, 6}, 73, -2.0, 2.0);
  Array targets({3});
  targets.v = {2.0, -1.0, 0.0};
  const Result r = reference(logits, targets, 5, 1.0);
  expect_gradient(
      logits, r.gradient,
      [&] {
        const Result now = reference(logits, targets, 5, 1.0);
        return now.losses.v[0] + now.losses.v[1] + now.losses.v[2];
      },
      "gradient");
}

// Padding that holds garbage must not enter.
void padding(Bench& bench, nsp_dtype type) {
  Array logits = stored(random_array({2, 6}, 74), type);
  logits(0, 5) = 0x1p100;
  logits(1, 4) = std::nan("");
  Array targets({2});
  targets.v = {1.0, 3.0};
  const Result expected = reference(logits, targets, 4, 1.0);
  nsp_classifier_args a{};
  a.logits = bench.in(logits, type);
  a.targets = bench.in(targets, NSP_I32);
  a.losses = bench.out({2});
  a.vocabulary = 4;
  a.gradient_scale = 1.0f;
  a.write_gradient = 1;
  bench.run(bench.ops().classifier, a);
  expect_relative(bench.read(a.losses), expected.losses, 1e-6, 1e-6, "losses");
  expect_relative(bench.read(a.logits), expected.gradient, bound(1e-6, type), 1e-7, "gradient");
}

// A diverged row must show: NaN in, NaN out.
void not_a_number(Bench& bench, nsp_dtype type) {
  Array logits = stored(random_array({2, 40}, 75), type);
  logits(1, 17) = std::nan("");
  nsp_classifier_args a{};
  a.logits = bench.in(logits, type);
  a.targets = bench.in(Array({2}), NSP_I32);
  a.losses = bench.out({2});
  a.vocabulary = 40;
  a.gradient_scale = 1.0f;
  a.write_gradient = 1;
  bench.run(bench.ops().classifier, a);
  const Array losses = bench.read(a.losses);
  EXPECT_TRUE(std::isfinite(losses.v[0]));
  EXPECT_TRUE(std::isnan(losses.v[1]));
}

}  // namespace

void add_classifier_cases(Cases& cases) {
  for (const nsp_dtype type : kTypes) {
    int number = 0;
    for (const Shape& s : kShapes) {
      const std::string id = std::to_string(number++) + suffix(type);
      cases.push_back({NSP_OP_classifier, "classifier_" + id, [=](Bench& b) { classifier(b, s, type, true, 5.0); }, type});
      cases.push_back({NSP_OP_classifier, "classifier_loss_only_" + id, [=](Bench& b) { classifier(b, s, type, false, 5.0); }, type});
      cases.push_back({NSP_OP_classifier, "classifier_peaked_" + id, [=](Bench& b) { classifier(b, s, type, true, 300.0); }, type});
    }
    cases.push_back({NSP_OP_classifier, "classifier_padding" + suffix(type), [=](Bench& b) { padding(b, type); }, type});
    cases.push_back({NSP_OP_classifier, "classifier_not_a_number" + suffix(type), [=](Bench& b) { not_a_number(b, type); }, type});
  }
  cases.push_back({NSP_OP_classifier, "classifier_reference", [](Bench&) { prove(); }});
}

}  // namespace nsp_ops
