// The example of a sync policy, held to what nsp's own policies are held to.
#include <gtest/gtest.h>

#include "nsp/sync_policy.hpp"
#include "tests/policies/against_serial.hpp"
#include "tests/policies/plugin_object.hpp"

namespace nsp::test {
namespace {

const std::vector<std::string> due{"", "x", "x", "", "x", "", "", "", "x"};

TEST(Doubling, EqualsTheSerialProgramBitForBit) {
  run_against_serial(Kind::cpu, 2, {{"period", "4"}}, {0.5, 0.5}, due);
  run_against_serial(Kind::cpu, 3, {{"period", "4"}}, {0.5, 0.25, 0.25}, due);
}

TEST(Doubling, EqualsTheSerialProgramOnADeviceTheHostCannotTouch) {
  run_against_serial(Kind::fake, 2, {{"period", "4"}}, {0.75, 0.25}, due);
}

TEST(Doubling, OneReplicaDoesNothing) {
  run_against_serial(Kind::cpu, 1, {}, {1.0}, {"", "", "", "", ""});
}

std::vector<int64_t> steps_due(const std::string& period, int64_t steps) {
  PluginObject<SyncPolicy> policy(nsp_plugin, {{"period", period}});
  policy->declare({}, 2);
  std::vector<int64_t> out;
  for (int64_t t = 0; t < steps; ++t)
    if (!policy->synced(t).empty()) out.push_back(t);
  return out;
}

TEST(Doubling, GapsGrowUpToThePeriod) {
  EXPECT_EQ(steps_due("8", 33), (std::vector<int64_t>{1, 2, 4, 8, 16, 24, 32}));
  EXPECT_EQ(steps_due("6", 20), (std::vector<int64_t>{1, 2, 4, 6, 12, 18}));
  EXPECT_EQ(steps_due("1", 4), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(steps_due("inf", 100), (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64}));
}

}  // namespace
}  // namespace nsp::test
