// What desloc says before the first step: states, periods that contradict, traffic, and when what is due.
#include <gtest/gtest.h>

#include "nsp/sync_policy.hpp"
#include "tests/policies/plugin_object.hpp"

namespace nsp::test {
namespace {

using Given = std::map<std::string, std::string>;

const std::vector<StateDecl> adam_states{{.kind = "adamw.m", .moment = 1}, {.kind = "adamw.v", .moment = 2}};
const std::vector<StateDecl> momentum_only{{.kind = "sgd.momentum", .moment = 1}};

PluginObject<SyncPolicy> desloc(const Given& given = {}) {
  return PluginObject<SyncPolicy>(nsp_plugin, given);
}

std::string declare_error(const Given& given, const std::vector<StateDecl>& states) {
  return usage_error([&] { desloc(given)->declare(states, 2); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DeslocOptions, DeclaresALandingStateOnlyIfParametersAreAveraged) {
  const std::vector<StateDecl> states = desloc()->declare(adam_states, 2);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].kind, "desloc.landing");
  EXPECT_EQ(states[0].dtype, DType::f32);
  EXPECT_EQ(states[0].extent, Extent::owned);
  EXPECT_EQ(states[0].scope, Scope::per_replica);
  EXPECT_EQ(states[0].merge, Merge::reset);
  EXPECT_EQ(states[0].moment, 0);
  EXPECT_FALSE(states[0].checkpointed);
  EXPECT_TRUE(desloc()->declare(adam_states, 1).empty());
  const Given apart{{"kx", "inf"}, {"ku", "inf"}, {"kv", "inf"}};
  EXPECT_TRUE(desloc(apart)->declare(adam_states, 2).empty());
  Given warm = apart;
  warm["warmup_steps"] = "5";
  EXPECT_EQ(desloc(warm)->declare(adam_states, 2).size(), 1U);
}

TEST(DeslocOptions, AGivenPeriodWithoutItsMomentIsRefused) {
  const std::string text = declare_error({{"kv", "192"}}, momentum_only);
  EXPECT_TRUE(contains(text, "desloc.kv is given, but the optimizer keeps no second moment")) << text;
  EXPECT_TRUE(contains(declare_error({{"ku", "96"}}, {}), "desloc.ku is given, but the optimizer keeps no first moment"));
  EXPECT_TRUE(contains(declare_error({{"ku", "inf"}}, {}), "desloc.ku is given"));
}

TEST(DeslocOptions, ADefaultPeriodWithoutItsMomentIsIgnoredAndSaid) {
  const PluginObject<SyncPolicy> policy = desloc({{"kx", "96"}});
  policy->declare(momentum_only, 2);
  ASSERT_EQ(policy.log().infos.size(), 1U);
  EXPECT_EQ(policy.log().infos[0], "desloc: the optimizer keeps no second moment, so the default desloc.kv 192 is ignored");
  EXPECT_TRUE(policy.log().warnings.empty());
  EXPECT_EQ(policy->synced(192), "xu");
}

TEST(DeslocOptions, ParametersAreAveragedAtLeastAsOftenAsMoments) {
  std::string text = declare_error({{"kx", "100"}}, adam_states);
  EXPECT_TRUE(contains(text, "desloc.ku 96 (the default) is less than desloc.kx 100")) << text;
  EXPECT_TRUE(contains(text, "Set --desloc.ku 300")) << text;
  text = declare_error({{"kv", "31"}}, adam_states);
  EXPECT_TRUE(contains(text, "desloc.kv 31 is less than desloc.kx 32")) << text;
  EXPECT_TRUE(contains(text, "Set --desloc.kv 192")) << text;
  text = declare_error({{"kx", "inf"}}, adam_states);
  EXPECT_TRUE(contains(text, "is less than desloc.kx inf")) << text;
  EXPECT_NO_THROW(desloc({{"kx", "96"}})->declare(adam_states, 2));
  EXPECT_NO_THROW(desloc({{"kx", "7"}, {"ku", "inf"}, {"kv", "inf"}})->declare(adam_states, 2));
}

TEST(DeslocOptions, PeriodsThatAreNoMultiplesAreWarnedAbout) {
  const PluginObject<SyncPolicy> odd = desloc({{"kx", "32"}, {"ku", "100"}, {"kv", "192"}});
  odd->declare(adam_states, 2);
  ASSERT_EQ(odd.log().warnings.size(), 1U);
  EXPECT_TRUE(contains(odd.log().warnings[0], "desloc.ku 100 is not a multiple of desloc.kx 32"));
  const PluginObject<SyncPolicy> fine = desloc();
  fine->declare(adam_states, 2);
  EXPECT_TRUE(fine.log().warnings.empty());
  EXPECT_TRUE(fine.log().infos.empty());
}

TEST(DeslocOptions, ValuesOutOfRangeAreRefused) {
  for (const char* name : {"kx", "ku", "kv"}) {
    EXPECT_NE(usage_error([&] { desloc({{name, "0"}}); }), "");
    EXPECT_NE(usage_error([&] { desloc({{name, "-3"}}); }), "");
  }
  EXPECT_TRUE(contains(usage_error([] { desloc({{"warmup_steps", "-1"}}); }), "desloc.warmup_steps is -1"));
  EXPECT_NE(usage_error([] { desloc({{"reduce_dtype", "int8"}}); }), "");
}

TEST(DeslocOptions, TrafficIsAmortisedAndComparedWithDdp) {
  const PluginObject<SyncPolicy> policy = desloc({{"kx", "256"}, {"ku", "768"}, {"kv", "1536"}});
  policy->declare(adam_states, 4);
  EXPECT_TRUE(policy->traffic(1000, 1).empty());
  const std::vector<TrafficLine> lines = policy->traffic(1000, 4);
  ASSERT_EQ(lines.size(), 4U);
  const double once = 2.0 * 3 * 4 * 1000;
  EXPECT_EQ(lines[0].what, "mean of weights in fp32 every 256 steps");
  EXPECT_DOUBLE_EQ(lines[0].bytes_per_step, once / 256);
  EXPECT_DOUBLE_EQ(lines[0].bytes_at_once, once);
  EXPECT_DOUBLE_EQ(lines[1].bytes_per_step, once / 768);
  EXPECT_DOUBLE_EQ(lines[2].bytes_per_step, once / 1536);
  EXPECT_TRUE(contains(lines[3].what, "170.67 times less than ddp in fp32")) << lines[3].what;
  EXPECT_DOUBLE_EQ(lines[3].bytes_per_step, once * 1.5 / 256);
  EXPECT_DOUBLE_EQ(lines[3].bytes_at_once, 3 * once);
  const PluginObject<SyncPolicy> federated = desloc({{"kx", "16"}, {"ku", "inf"}, {"kv", "inf"}});
  federated->declare(adam_states, 4);
  ASSERT_EQ(federated->traffic(1000, 4).size(), 2U);
  EXPECT_TRUE(contains(federated->traffic(1000, 4)[1].what, "16.00 times less"));
}

TEST(DeslocOptions, DueAtMultiplesFromTheFirstPeriodOn) {
  const PluginObject<SyncPolicy> policy = desloc({{"kx", "2"}, {"ku", "4"}, {"kv", "6"}});
  policy->declare(adam_states, 3);
  const std::vector<std::string> expected{"", "", "x", "", "xu", "", "xv", "", "xu", "", "x", "", "xuv", ""};
  for (std::size_t t = 0; t < expected.size(); ++t) EXPECT_EQ(policy->synced(static_cast<int64_t>(t)), expected[t]) << "step " << t;
  const PluginObject<SyncPolicy> alone = desloc({{"kx", "1"}, {"ku", "1"}, {"kv", "1"}});
  alone->declare(adam_states, 1);
  EXPECT_EQ(alone->synced(1), "");
}

TEST(DeslocOptions, WarmUpAveragesEverythingEveryStep) {
  const PluginObject<SyncPolicy> policy = desloc({{"kx", "4"}, {"ku", "8"}, {"kv", "inf"}, {"warmup_steps", "3"}});
  policy->declare(adam_states, 2);
  const std::vector<std::string> expected{"", "xuv", "xuv", "", "x", "", "", "", "xu"};
  for (std::size_t t = 0; t < expected.size(); ++t) EXPECT_EQ(policy->synced(static_cast<int64_t>(t)), expected[t]) << "step " << t;
}

TEST(DeslocOptions, SaysWhatItIs) {
  const PluginObject<SyncPolicy> policy = desloc();
  EXPECT_FALSE(policy->sums_gradients());
  EXPECT_TRUE(policy->replicas_differ(2));
  EXPECT_FALSE(policy->replicas_differ(1));
  EXPECT_EQ(policy->staging_bytes(2, 1000), 4000);
  EXPECT_EQ(policy->staging_bytes(1, 1000), 0);
}

}  // namespace
}  // namespace nsp::test
