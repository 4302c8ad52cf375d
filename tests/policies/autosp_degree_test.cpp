// How autosp and dp choose who shares a sequence, and the texts of what they refuse.
#include <gtest/gtest.h>

#include "nsp/parallel_strategy.hpp"
#include "tests/policies/plugin_object.hpp"

namespace nsp::test {
namespace {

PluginObject<ParallelStrategy> autosp(const std::string& degree = "auto") {
  return PluginObject<ParallelStrategy>(nsp_plugin, {{"degree", degree}});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ParallelQuestion question(int ranks, int64_t heads, int64_t global_batch) {
  return {.ranks = ranks, .heads = heads, .kv_heads = heads, .head_dim = 16, .context = 1000, .global_batch = global_batch};
}

ParallelQuestion grouped(int ranks, int64_t heads, int64_t kv_heads) {
  ParallelQuestion q = question(ranks, heads, ranks);
  q.kv_heads = kv_heads;
  return q;
}

// A rank needs 100 GiB at degree 1, and the d-th part at degree d.
ParallelQuestion with_memory(ParallelQuestion q, int64_t budget_gib) {
  q.memory_budget = budget_gib << 30;
  q.bytes_at_degree = [](int degree) { return (int64_t{100} << 30) / degree; };
  return q;
}

std::string refusal(const std::string& degree, const ParallelQuestion& q) {
  return usage_error([&] { autosp(degree)->propose(q); });
}

TEST(AutospDegree, GivenDegreesThatFitAreTaken) {
  for (const int degree : {1, 2, 3, 6}) {
    const PluginObject<ParallelStrategy> strategy = autosp(std::to_string(degree));
    const ParallelPlan plan = strategy->propose(question(6, 7, 6));
    EXPECT_EQ(plan.replica_size(), degree);
    ASSERT_EQ(plan.axes.size(), 1U);
    EXPECT_EQ(plan.axes[0].name, "sequence");
    ASSERT_EQ(plan.token_cuts.size(), static_cast<std::size_t>(degree) + 1);
    EXPECT_EQ(plan.token_cuts.front(), 0);
    EXPECT_EQ(plan.token_cuts.back(), 1000);
    EXPECT_EQ(strategy->splits_heads(), degree > 1);
    EXPECT_TRUE(contains(plan.reason, "degree " + std::to_string(degree) + " as given")) << plan.reason;
  }
}

TEST(AutospDegree, RefusalsSayWhyAndWhatToDo) {
  std::string text = refusal("3", question(4, 8, 8));
  EXPECT_TRUE(contains(text, "3 does not divide 4 ranks")) << text;
  EXPECT_TRUE(contains(text, "Use one of 1, 2, 4")) << text;
  text = refusal("8", question(4, 8, 8));
  EXPECT_TRUE(contains(text, "8 does not divide 4 ranks")) << text;
  text = refusal("4", question(4, 3, 8));
  EXPECT_TRUE(contains(text, "the model has 3")) << text;
  EXPECT_TRUE(contains(text, "at most 3")) << text;
  ParallelQuestion short_sequences = question(4, 8, 8);
  short_sequences.context = 2;
  text = refusal("4", short_sequences);
  EXPECT_TRUE(contains(text, "sequences have 2")) << text;
  EXPECT_TRUE(contains(text, "longer train.context")) << text;
  text = refusal("2", question(8, 8, 3));
  EXPECT_TRUE(contains(text, "4 replicas cannot share 3 sequences")) << text;
  EXPECT_TRUE(contains(text, "Raise train.global_batch to at least 4")) << text;
  text = refusal("8", grouped(8, 4, 2));
  EXPECT_TRUE(contains(text, "each rank attends with at least one head, and the model has 4")) << text;
}

TEST(AutospDegree, WordsThatAreNoDegreeAreRefused) {
  for (const char* word : {"0", "-2", "two", "1.5", "", "99999999999999999999"}) {
    const std::string text = usage_error([&] { autosp(word); });
    EXPECT_TRUE(contains(text, "is not a degree")) << text;
  }
}

struct AutoCase {
  const char* name;
  ParallelQuestion question;
  int degree;
  const char* reason;
};

TEST(AutospDegree, AutoTakesTheSmallestThatFits) {
  const std::vector<AutoCase> table{
      {"nothing is short", question(8, 8, 8), 1, "8 replicas of 1 rank"},
      {"few sequences", question(8, 8, 2), 4, "not 1: 8 replicas cannot share 2 sequences a step; not 2: 4 replicas"},
      {"one sequence", question(4, 8, 1), 4, "1 replica of 4 ranks"},
      {"memory", with_memory(question(8, 8, 8), 60), 2, "not 1: a rank would need 100.00 GiB of 60.00 GiB"},
      {"little memory", with_memory(question(8, 8, 8), 13), 8, "not 4: a rank would need 25.00 GiB of 13.00 GiB"},
      {"an even one is preferred", with_memory(question(12, 9, 12), 60), 3, "not 2: it does not divide 9 heads"},
      {"uneven if there is no even one", with_memory(question(8, 9, 8), 30), 4, "uneven shares of 9 heads"},
      {"no memory is enough", with_memory(question(4, 8, 4), 1), 4, "no degree fits into memory and this one needs least"},
      {"groups share evenly", with_memory(grouped(12, 12, 4), 60), 2, "6 replicas of 2 ranks"},
      {"groups are torn evenly", with_memory(grouped(12, 12, 3), 25), 6, "not 4: it does not divide 12 heads in 3 groups"},
      {"groups are replicated", with_memory(grouped(8, 8, 2), 20), 8, "each key/value head on 4 ranks"},
      {"heads bound it", with_memory(question(8, 2, 8), 1), 2, "no degree fits into memory"},
  };
  for (const AutoCase& c : table) {
    const ParallelPlan plan = autosp()->propose(c.question);
    EXPECT_EQ(plan.replica_size(), c.degree) << c.name << ": " << plan.reason;
    EXPECT_TRUE(contains(plan.reason, c.reason)) << c.name << ": " << plan.reason;
    EXPECT_TRUE(contains(plan.reason, "by auto")) << plan.reason;
  }
}

TEST(AutospDegree, AutoSaysWhenTheJobHasTooFewSequences) {
  const std::string text = refusal("auto", question(8, 2, 3));
  EXPECT_TRUE(contains(text, "8: each rank attends with at least one head")) << text;
  EXPECT_TRUE(contains(text, "2: 4 replicas cannot share 3 sequences")) << text;
  EXPECT_TRUE(contains(text, "Raise train.global_batch to at least 4")) << text;
}

TEST(AutospDegree, HeadsAndTokensAreCutNearEqually) {
  const PluginObject<ParallelStrategy> strategy = autosp("8");
  const ParallelPlan plan = strategy->propose(question(8, 12, 8));
  int64_t next = 0;
  for (int position = 0; position < 8; ++position) {
    const HeadShare share = strategy->head_share(plan, position, 12, 12);
    EXPECT_EQ(share.query_lo, next);
    EXPECT_TRUE(share.query_heads() == 1 || share.query_heads() == 2);
    EXPECT_EQ(share.kv_lo, share.query_lo);
    EXPECT_EQ(share.kv_hi, share.query_hi);
    next = share.query_hi;
    const int64_t tokens = plan.token_cuts[static_cast<std::size_t>(position) + 1] - plan.token_cuts[static_cast<std::size_t>(position)];
    EXPECT_EQ(tokens, 125);
  }
  EXPECT_EQ(next, 12);
}

std::vector<HeadShare> shares(int degree, int64_t heads, int64_t kv_heads) {
  const PluginObject<ParallelStrategy> strategy = autosp(std::to_string(degree));
  const ParallelPlan plan = strategy->propose(grouped(degree, heads, kv_heads));
  std::vector<HeadShare> out;
  for (int position = 0; position < degree; ++position) out.push_back(strategy->head_share(plan, position, heads, kv_heads));
  return out;
}

TEST(AutospHeads, GroupsStayWholeUpToTheirNumberAndAreReplicatedAboveIt) {
  using Map = std::vector<HeadShare>;
  EXPECT_EQ(shares(2, 8, 2), (Map{{0, 4, 0, 1}, {4, 8, 1, 2}}));
  EXPECT_EQ(shares(3, 8, 4), (Map{{0, 2, 0, 1}, {2, 4, 1, 2}, {4, 8, 2, 4}}));
  EXPECT_EQ(shares(4, 8, 2), (Map{{0, 2, 0, 1}, {2, 4, 0, 1}, {4, 6, 1, 2}, {6, 8, 1, 2}}));
  EXPECT_EQ(shares(3, 8, 2), (Map{{0, 4, 0, 1}, {4, 6, 1, 2}, {6, 8, 1, 2}}));
  EXPECT_EQ(shares(3, 8, 1), (Map{{0, 2, 0, 1}, {2, 5, 0, 1}, {5, 8, 0, 1}}));
}

// What the contract of HeadShare says, for every possible grouping and degree.
TEST(AutospHeads, EveryMapIsExact) {
  for (int64_t heads = 1; heads <= 12; ++heads)
    for (int64_t kv_heads = 1; kv_heads <= heads; ++kv_heads) {
      if (heads % kv_heads != 0) continue;
      for (int degree = 1; degree <= heads; ++degree) {
        SCOPED_TRACE(std::to_string(heads) + " heads, " + std::to_string(kv_heads) + " groups, degree " + std::to_string(degree));
        const int64_t group = heads / kv_heads;
        int64_t next = 0;
        for (const HeadShare& share : shares(degree, heads, kv_heads)) {
          EXPECT_EQ(share.query_lo, next);
          ASSERT_GE(share.query_heads(), 1);
          ASSERT_GE(share.kv_heads(), 1);
          ASSERT_EQ(share.query_heads() % share.kv_heads(), 0);
          for (int64_t i = 0; i < share.query_heads(); ++i)
            EXPECT_EQ((share.query_lo + i) / group, share.kv_lo + i / (share.query_heads() / share.kv_heads()));
          next = share.query_hi;
        }
        EXPECT_EQ(next, heads);
      }
    }
}

TEST(Dp, EveryRankIsAReplica) {
  const PluginObject<ParallelStrategy> dp(nsp_builtin_parallel_dp);
  const ParallelPlan plan = dp->propose(question(6, 8, 6));
  EXPECT_EQ(plan.replica_size(), 1);
  EXPECT_EQ(plan.token_cuts, (std::vector<int64_t>{0, 1000}));
  EXPECT_FALSE(dp->splits_heads());
  EXPECT_EQ(dp->head_share(plan, 0, 8, 2), (HeadShare{0, 8, 0, 2}));
  EXPECT_EQ(dp->staging_bytes(plan, question(6, 8, 6), 4), 0);
  const std::string text = usage_error([&] { dp->propose(question(6, 8, 5)); });
  EXPECT_TRUE(contains(text, "Raise train.global_batch to 6 or more")) << text;
  EXPECT_TRUE(contains(text, "--plugins autosp")) << text;
}

}  // namespace
}  // namespace nsp::test
