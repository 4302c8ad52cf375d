// adamw and sgd against the same rules in double precision, on the CPU backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nsp/optimizer.hpp"
#include "tests/policies/plugin_object.hpp"
#include "tests/policies/ranks.hpp"
#include "tests/support/toy_backend.hpp"

namespace nsp::test {
namespace {

using Given = std::map<std::string, std::string>;
using Numbers = std::vector<double>;

constexpr int64_t n = 203;
constexpr double lr = 0.01, scale = 0.125;

std::vector<float> gradient(int step) {
  return values(n, static_cast<unsigned>(50 + step));
}

// Five updates of one piece; returns the weights.
std::vector<float> run(const nsp_plugin_v1& descriptor, const Given& given, Role role) {
  std::vector<float> weights;
  run_ranks(Kind::cpu, 1, [&](Rank& rank) {
    const PluginObject<Optimizer> optimizer(descriptor, given);
    const Buffer weight = upload(rank, values(n, 1));
    std::vector<Buffer> storage;
    std::vector<TensorView> states;
    for (std::size_t i = 0; i < optimizer->declare().size(); ++i) {
      storage.push_back(upload(rank, std::vector<float>(n, 0.0F)));
      states.push_back(vector_view(storage.back()));
    }
    for (int step = 1; step <= 5; ++step) {
      const Buffer g = upload(rank, gradient(step));
      const OptimizerPiece piece{{0, 0, n}, role, vector_view(weight), vector_view(g), states};
      optimizer->step(Ops(rank.stream), piece, {.lr = lr, .gradient_scale = scale, .count = step});
      rank.wait.wait(*now(rank));
    }
    weights = read(rank, vector_view(weight));
  });
  return weights;
}

struct AdamRule {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;
};

Numbers adamw_in_double(const AdamRule& rule, bool decays) {
  const std::vector<float> start = values(n, 1);
  Numbers w(start.begin(), start.end()), m(n, 0.0), v(n, 0.0);
  for (int t = 1; t <= 5; ++t) {
    const std::vector<float> sums = gradient(t);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = scale * sums[i];
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
      const double step = m[i] / (1 - std::pow(rule.beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(rule.beta2, t))) + rule.eps);
      w[i] -= lr * (step + (decays ? rule.decay : 0.0) * w[i]);
    }
  }
  return w;
}

Numbers sgd_in_double(double momentum, bool nesterov, double decay) {
  const std::vector<float> start = values(n, 1);
  Numbers w(start.begin(), start.end()), b(n, 0.0);
  for (int t = 1; t <= 5; ++t) {
    const std::vector<float> sums = gradient(t);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = scale * sums[i] + decay * w[i];
      b[i] = momentum * b[i] + g;
      w[i] -= lr * (nesterov ? g + momentum * b[i] : b[i]);
    }
  }
  return w;
}

void expect_near(const std::vector<float>& result, const Numbers& expected) {
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 2e-6) << "element " << i;
}

// Steps on a backend that has nothing but the ops that the optimizer names, and on one that lacks one of these.
void expect_it_calls_what_it_names(const PluginObject<Optimizer>& optimizer) {
  const std::vector<nsp_op> named = optimizer->ops();
  ASSERT_FALSE(named.empty());
  const auto step = [&](const std::vector<nsp_op>& there) {
    nsp_op_table ops = *toy_backend()->ops;
#define NSP_OP_ABSENT(name, tensors) \
  if (std::count(there.begin(), there.end(), NSP_OP_##name) == 0) ops.name = nullptr;
    NSP_OP_LIST(NSP_OP_ABSENT)
#undef NSP_OP_ABSENT
    nsp_backend table = *toy_backend();
    table.ops = &ops;
    Device device(&table, "toy", 0, 1);
    Stream stream(device);
    const Buffer values(device, n * 4, MemoryKind::device, "values");
    const TensorView view(values.data(), DType::f32, {n});
    const std::vector<TensorView> states(optimizer->declare().size(), view);
    for (int count = 1; count <= 10; ++count) optimizer->step(Ops(stream), {{0, 0, n}, Role::matrix, view, view, states}, {.count = count});
  };
  EXPECT_NO_THROW(step(named));
  for (std::size_t i = 0; i < named.size(); ++i) {
    std::vector<nsp_op> fewer = named;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THROW(step(fewer), Error) << "op " << named[i] << " is never called";
  }
}

TEST(Optimizers, NameTheOpsThatTheyCall) {
  expect_it_calls_what_it_names(PluginObject<Optimizer>(nsp_builtin_optimizer_adamw));
  expect_it_calls_what_it_names(PluginObject<Optimizer>(nsp_plugin));
  expect_it_calls_what_it_names(PluginObject<Optimizer>(nsp_plugin, {{"momentum", "0"}}));
}

TEST(Adamw, EqualsTheRuleInDouble) {
  for (const Role role : {Role::matrix, Role::embedding, Role::norm, Role::bias}) {
    const bool decays = role == Role::matrix || role == Role::embedding;
    expect_near(run(nsp_builtin_optimizer_adamw, {}, role), adamw_in_double({}, decays));
  }
  expect_near(
      run(nsp_builtin_optimizer_adamw, {{"beta1", "0"}, {"beta2", "0.999"}, {"eps", "1e-3"}, {"weight_decay", "0.5"}}, Role::matrix),
      adamw_in_double({0.0, 0.999, 1e-3, 0.5}, true));
}

TEST(Adamw, DeclaresItsMoments) {
  const std::vector<StateDecl> states = PluginObject<Optimizer>(nsp_builtin_optimizer_adamw)->declare();
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].kind, "adamw.m");
  EXPECT_EQ(states[0].moment, 1);
  EXPECT_EQ(states[1].kind, "adamw.v");
  EXPECT_EQ(states[1].moment, 2);
  for (const StateDecl& state : states) {
    EXPECT_EQ(state.merge, Merge::weighted_mean);
    EXPECT_EQ(state.extent, Extent::owned);
    EXPECT_EQ(state.scope, Scope::common);
    EXPECT_TRUE(state.checkpointed);
  }
}

TEST(Adamw, OptionsOutOfRangeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> bad{{"beta1", "1"}, {"beta1", "-0.1"}, {"beta2", "1.5"},         {"beta2", "-1"},
                                                             {"eps", "0"},   {"eps", "-1e-8"},  {"weight_decay", "-0.1"}, {"eps", "1e-60"}};
  for (const auto& [name, text] : bad) {
    const std::string error = usage_error([&, name = name, text = text] {
      PluginObject<Optimizer>(nsp_builtin_optimizer_adamw, {{name, text}});
    });
    EXPECT_NE(error.find("adamw." + name), std::string::npos) << error;
  }
}

TEST(Sgd, EqualsTheRuleInDouble) {
  expect_near(run(nsp_plugin, {}, Role::matrix), sgd_in_double(0.9, false, 0.0));
  expect_near(run(nsp_plugin, {{"nesterov", "true"}, {"weight_decay", "0.25"}}, Role::matrix), sgd_in_double(0.9, true, 0.25));
  expect_near(run(nsp_plugin, {{"weight_decay", "0.25"}}, Role::norm), sgd_in_double(0.9, false, 0.0));
  expect_near(run(nsp_plugin, {{"momentum", "0"}, {"weight_decay", "0.25"}}, Role::embedding), sgd_in_double(0.0, false, 0.25));
}

TEST(Sgd, DeclaresMomentumOnlyIfThereIsSome) {
  const std::vector<StateDecl> states = PluginObject<Optimizer>(nsp_plugin)->declare();
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].kind, "sgd.momentum");
  EXPECT_EQ(states[0].moment, 1);
  EXPECT_EQ(states[0].merge, Merge::weighted_mean);
  EXPECT_TRUE(PluginObject<Optimizer>(nsp_plugin, {{"momentum", "0"}})->declare().empty());
}

TEST(Sgd, OptionsOutOfRangeAreRefused) {
  const std::vector<Given> bad{
      {{"momentum", "1"}}, {{"momentum", "-0.5"}}, {{"weight_decay", "-1"}}, {{"momentum", "0"}, {"nesterov", "true"}}};
  for (const Given& given : bad)
    EXPECT_NE(usage_error([&] { PluginObject<Optimizer>(nsp_plugin, given); }).find("sgd."), std::string::npos);
}

}  // namespace
}  // namespace nsp::test
