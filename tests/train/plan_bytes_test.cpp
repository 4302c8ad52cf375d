// What the plan says is sent and stored, against what whole jobs really send and store.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

LocalResult four_steps(const std::string& sync, const std::string& parallel, int ranks, const std::map<std::string, std::string>& options) {
  LocalSettings s = tiny_settings();
  s.sync = sync;
  s.parallel = parallel;
  s.ranks = ranks;
  s.options = options;
  s.global_batch = 5;  // uneven shares
  s.train.steps = 4;
  return run_local(s);
}

std::vector<std::string> records(const LocalResult& result, const std::string& kind) {
  std::vector<std::string> found;
  for (const std::string& line : result.metrics)
    if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos) found.push_back(line);
  return found;
}

// replica_bytes of every step, and the size of the checkpoint.
void expect_planned(const LocalResult& result) {
  const std::vector<std::string> steps = records(result, "step"), checkpoints = records(result, "checkpoint");
  ASSERT_EQ(steps.size(), 4u);
  for (const std::string& step : steps) EXPECT_EQ(json_number(step, "replica_bytes"), result.planned.links.replica().total()) << step;
  ASSERT_FALSE(checkpoints.empty());
  EXPECT_EQ(json_number(checkpoints.back(), "size"), static_cast<double>(result.planned.checkpoint.total));
}

class EveryStep : public testing::TestWithParam<int> {};  // ranks

TEST_P(EveryStep, DdpSendsWhatIsPlanned) {
  const LocalResult result = four_steps("ddp", "dp", GetParam(), {});
  expect_planned(result);
  for (const std::string& step : records(result, "step"))
    EXPECT_EQ(json_number(step, "sync_bytes"), result.planned.links.policy().total()) << step;
}

INSTANTIATE_TEST_SUITE_P(PlanBytes, EveryStep, testing::Values(1, 2, 3));

TEST(PlanBytes, DeslocSendsWhatIsPlannedOnceEachIsDue) {
  const LocalResult result = four_steps("desloc", "dp", 2, {{"desloc.kx", "1"}, {"desloc.ku", "2"}, {"desloc.kv", "2"}});
  expect_planned(result);
  const std::vector<std::string> steps = records(result, "step");
  const Links& links = result.planned.links;
  double most = 0;
  for (const std::string& step : steps) most = std::max(most, json_number(step, "sync_bytes"));
  EXPECT_EQ(most, links.at_once().total());
  // Steps 2 and 3 (t = 1, 2) are one period of every state.
  EXPECT_EQ(json_number(steps[1], "sync_bytes") + json_number(steps[2], "sync_bytes"), 2 * links.policy().total());
}

TEST(PlanBytes, AutospSendsWhatIsPlanned) {
  const LocalResult result = four_steps("ddp", "autosp", 4, {{"autosp.degree", "2"}});
  expect_planned(result);
  for (const std::string& step : records(result, "step"))
    EXPECT_EQ(json_number(step, "sync_bytes"), result.planned.links.policy().total()) << step;
}

TEST(PlanBytes, AutospWithUnevenHeadsAndTokens) {
  expect_planned(four_steps("desloc", "autosp", 3, {{"autosp.degree", "3"}}));
}

// Two replicas of two ranks: whether a host holds a replica or one rank of each decides what crosses between hosts.
TEST(PlanBytes, LinksFollowTheHosts) {
  const Planned planned = four_steps("ddp", "autosp", 4, {{"autosp.degree", "2"}}).planned;
  const HeadSizes heads{2, 16, {{0, 2, 0, 2}, {2, 4, 2, 4}}};
  ParamTable table;
  table.add_segment("all");
  table.add("w", {6400}, Role::bias, {});
  const std::vector<TrafficLine> traffic = {{"sum", 1000, 2000}, {"in all", 1000, 2000, true}};
  const auto count = [&](const std::vector<std::string>& hosts) {
    Topology topology = planned.topology;
    for (std::size_t r = 0; r < 4; ++r) topology.ranks[r].host = hosts[r];
    return count_links(planned.plan, table, heads, traffic, {}, topology);
  };
  const Links replica_each = count({"a", "a", "b", "b"}), across = count({"a", "b", "a", "b"}), one = count({"a", "a", "a", "a"});
  EXPECT_EQ(replica_each.replica().between, 0);
  EXPECT_EQ(replica_each.policy().inside, 0);
  EXPECT_EQ(replica_each.policy().between, 1000);
  EXPECT_EQ(replica_each.busiest_host, 500);
  EXPECT_EQ(replica_each.at_once().between, 2000);
  EXPECT_EQ(across.replica().inside, 0);
  EXPECT_EQ(across.replica().total(), replica_each.replica().total());
  EXPECT_EQ(across.policy().between, 0);
  EXPECT_EQ(one.busiest_host, 0);
  EXPECT_EQ(one.replica().inside, replica_each.replica().inside);
  // 2 replicas: gradients and weights 6400 floats each way between the two positions; 64 tokens, 4 heads of 16, 2 layers, 8
  // tensors of q, k, v, out forward and backward, half of each moves; 5 sequences.
  EXPECT_EQ(one.lines[0].per_step.inside, 2 * 6400 * 4);
  EXPECT_EQ(one.lines[1].per_step.inside, 2 * 6400 * 4);
  EXPECT_EQ(one.lines[2].per_step.inside, 5.0 * 2 * 8 * 64 * 64 * 4 / 2);
  EXPECT_NE(links_text(replica_each).find("1000 "), std::string::npos);
}

}  // namespace
}  // namespace nsp::test
