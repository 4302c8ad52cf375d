// The reference's own gradients against central differences in double, so that agreeing with it means something.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/model/reference_transformer.hpp"
#include "tests/model/samples.hpp"

namespace nsp::test {
namespace {

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Values moved(const Values& x, const Values& direction, double step) {
  Values y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += step * direction[i];
  return y;
}

// d/ds f(s) at 0 by central differences of fourth order against the claimed slope.
template <class Function>
void expect_slope(Function f, double claimed) {
  const double step = 2e-5, measured = (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step);
  EXPECT_NEAR(measured, claimed, 1e-7 * (1 + std::abs(claimed)));
}

// The scalar dot(dy, layer(x)) along random directions: of x alone, of every parameter alone.
void prove(const Layer& layer, const Params& params, const Values& x, std::mt19937& random) {
  const Values dy = normal_values(layer.forward(params, x).size(), 1, random);
  Params gradients;
  const Values dx = layer.backward(params, x, dy, gradients);
  for (int i = 0; i < 4; ++i) {
    const Values direction = normal_values(x.size(), 1, random);
    expect_slope([&](double s) { return dot(dy, layer.forward(params, moved(x, direction, s))); }, dot(dx, direction));
  }
  EXPECT_EQ(gradients.size(), params.size());
  for (const auto& [name, value] : params) {
    SCOPED_TRACE(name);
    const Values direction = normal_values(value.size(), 1, random);
    const auto along = [&](double s) {
      Params there = params;
      there[name] = moved(value, direction, s);
      return dot(dy, layer.forward(there, x));
    };
    expect_slope(along, dot(gradients.at(name), direction));
  }
}

TEST(ReferenceLayer, LinearGradients) {
  std::mt19937 random(1);
  prove(linear_layer("f", 5, 3, 4), {{"f.weight", normal_values(12, 1, random)}, {"f.bias", normal_values(4, 1, random)}},
        normal_values(15, 1, random), random);
}

TEST(ReferenceLayer, LayerNormGradients) {
  std::mt19937 random(2);
  prove(layernorm_layer("f", 4, 6, 1e-5), {{"f.weight", normal_values(6, 1, random)}, {"f.bias", normal_values(6, 1, random)}},
        normal_values(24, 1, random), random);
}

TEST(ReferenceLayer, GeluGradient) {
  std::mt19937 random(3);
  prove(gelu_layer(), {}, normal_values(40, 2, random), random);
}

TEST(ReferenceLayer, AttentionGradients) {
  std::mt19937 random(4);
  AttentionShape shape{2, 6, 2, 3, 0, {}};
  const Values qkv = normal_values(2 * 6 * 3 * 2 * 3, 1, random);
  prove(attention_core_layer(shape), {}, qkv, random);
  shape.window = 3;
  prove(attention_core_layer(shape), {}, qkv, random);
  shape.document_start = {0, 0, 2, 2, 2, 5, 0, 1, 1, 1, 4, 4};
  prove(attention_core_layer(shape), {}, qkv, random);
}

TEST(ReferenceLayer, RmsNormGradients) {
  std::mt19937 random(6);
  prove(rmsnorm_layer("f", 4, 6, 1e-5), {{"f.weight", normal_values(6, 1, random)}}, normal_values(24, 1, random), random);
}

TEST(ReferenceLayer, SwigluGradient) {
  std::mt19937 random(7);
  prove(swiglu_layer(5, 4), {}, normal_values(40, 2, random), random);
}

TEST(ReferenceLayer, GroupedAttentionAndRopeGradients) {
  std::mt19937 random(8);
  AttentionShape shape{2, 5, 4, 4, 3, {0, 0, 2, 2, 2, 0, 1, 1, 1, 4}};
  shape.kv_heads = 2;
  shape.rope_theta = 10;
  shape.position = {0, 1, 2, 3, 4, 3, 4, 5, 6, 7};
  const Values qkv = normal_values(static_cast<std::size_t>(10 * shape.row()), 1, random);
  prove(attention_core_layer(shape), {}, qkv, random);
  prove(rope_layer(shape), {}, qkv, random);
}

// What rope is for: scores depend on the distance of two tokens, not on where they are.
TEST(ReferenceLayer, RopeMakesScoresDependOnDistance) {
  std::mt19937 random(9);
  AttentionShape shape{1, 4, 2, 8, 0, {}};
  shape.rope_theta = 10;
  shape.position = {0, 1, 2, 3};
  AttentionShape later = shape;
  later.position = {5, 6, 7, 8};
  const Values qkv = normal_values(static_cast<std::size_t>(4 * shape.row()), 1, random);
  const auto out = [&](const AttentionShape& s) { return chain(rope_layer(s), attention_core_layer(s)).forward({}, qkv); };
  const Values a = out(shape), b = out(later), unturned = attention_core_layer(shape).forward({}, qkv);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
  EXPECT_NE(a, unturned);
}

class ReferenceTransformerFamilies : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Families, ReferenceTransformerFamilies, testing::ValuesIn(variants()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ReferenceTransformerFamilies, GradientsAlongRandomDirections) {
  std::mt19937 random(5);
  const ModelSpec spec = GetParam().spec;
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, 9, random);
  const ReferenceResult result = reference_step(spec, params, batch, true);
  for (int i = 0; i < 20; ++i) {  // all parameters at once
    Params direction;
    double claimed = 0;
    for (const auto& [name, value] : params)
      claimed += dot(result.gradients.at(name), direction[name] = normal_values(value.size(), 1, random));
    const auto along = [&](double s) {
      Params there;
      for (const auto& [name, value] : params) there[name] = moved(value, direction[name], s);
      return reference_step(spec, there, batch, false).loss_sum;
    };
    expect_slope(along, claimed);
  }
}

}  // namespace
}  // namespace nsp::test
