#include "core/train/breakdown.hpp"

#include <gtest/gtest.h>

#include <string>

namespace nsp {
namespace {

RankReport rank_report(double compute, double averages, double peak = 1e8) {
  RankReport r;
  r.time.total = 10;
  r.time.compute = compute;
  r.time.data = 0.1;
  r.time.optimizer = 0.4;
  r.time.averages = averages;
  r.time.vectors = 0.1;
  r.time.hidden = 1;
  r.peak_resident = peak;
  return r;
}

RunFacts facts_of(int ranks, const char* sync = "ddp") {
  RunFacts facts;
  facts.sync = sync;
  facts.parallel = "dp";
  facts.micro_batch = 16;
  facts.tokens_at_once = 2048;
  facts.planned_bytes = 1 << 26;
  for (int r = 0; r < ranks; ++r) facts.ranks.push_back({"node" + std::to_string(r), int64_t{8} << 30, 1});
  return facts;
}

std::string all_hints(const std::vector<RankReport>& reports, const RunFacts& facts) {
  std::string text;
  for (const std::string& hint : summarize(reports, facts).hints) text += hint + "\n";
  return text;
}

#define EXPECT_IN(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text)

TEST(Breakdown, PartsAddUpAndTheSlowestRankIsNamed) {
  const std::vector<RankReport> reports{rank_report(6, 2.5), rank_report(8, 0.5, 3e8)};
  const EndReport end = summarize(reports, facts_of(2));
  EXPECT_DOUBLE_EQ(end.mean.compute, 7);
  EXPECT_DOUBLE_EQ(end.mean.exposed(), 1.6);
  EXPECT_NEAR(end.mean.work() + end.mean.exposed() + end.mean.evaluation + end.mean.checkpoint + end.mean.rest(), end.mean.total, 1e-12);
  EXPECT_EQ(end.slowest, 1);
  EXPECT_NEAR(end.imbalance, 8.5 / 7.5, 1e-12);
  EXPECT_EQ(end.largest, 1);
  EXPECT_EQ(end.peak_resident, 3e8);
  const std::string text = end_text(end, reports, facts_of(2));
  EXPECT_IN(text, "time of 2 ranks, 10.0 s");
  EXPECT_IN(text, "  compute                            70.0%     80.0%  rank 1\n");
  EXPECT_IN(text, "  communication, exposed             16.0%     26.0%  rank 0\n");
  EXPECT_IN(text, "  communication, hidden              10.0%");
  EXPECT_IN(text, "imbalance: rank 1 on node1 worked 1.13 times the mean");
  EXPECT_IN(text, "largest resident set 286.1 MiB, rank 1 on node1");
  EXPECT_EQ(text.find("exchanges inside"), std::string::npos);  // nothing of it
}

TEST(Breakdown, OneRankHasNoColumnForTheLargest) {
  const std::vector<RankReport> reports{rank_report(9, 0)};
  const std::string text = end_text(summarize(reports, facts_of(1)), reports, facts_of(1));
  EXPECT_IN(text, "time of 1 rank, 10.0 s");
  EXPECT_EQ(text.find("imbalance"), std::string::npos);
  EXPECT_EQ(text.find("max"), std::string::npos);
}

TEST(Breakdown, NothingMeasuredIsNotDividedBy) {
  const std::vector<RankReport> reports(2);
  const EndReport end = summarize(reports, facts_of(2));
  EXPECT_EQ(end.imbalance, 1);
  EXPECT_TRUE(end.hints.empty());
  EXPECT_IN(end_text(end, reports, facts_of(2)), "0.0%");
}

TEST(EndHints, ABalancedRunHasNone) {
  EXPECT_EQ(all_hints({rank_report(9, 0.2), rank_report(9, 0.2)}, facts_of(2)), "");
}

TEST(EndHints, ExposedCommunicationNamesThePolicysKeys) {
  const std::vector<RankReport> reports{rank_report(6, 3), rank_report(6, 3)};
  EXPECT_IN(all_hints(reports, facts_of(2)), "waited for communication 31% of the time");
  EXPECT_IN(all_hints(reports, facts_of(2)), "--plugins desloc");
  EXPECT_IN(all_hints(reports, facts_of(2, "desloc")), "desloc.kx, ku, kv");
  std::vector<RankReport> inside = reports;
  for (RankReport& r : inside) std::swap(r.time.averages, r.time.exchanges);
  RunFacts facts = facts_of(2);
  facts.parallel = "autosp";
  EXPECT_IN(all_hints(inside, facts), "lower autosp.degree");
}

TEST(EndHints, AnUnevenRunNamesTheSlowRankAndItsHost) {
  const std::string hints = all_hints({rank_report(5, 3.5), rank_report(8.5, 0), rank_report(5, 3.5)}, facts_of(3));
  EXPECT_IN(hints, "rank 1 on node1 worked 35% longer than the mean");
  EXPECT_IN(hints, "train.threads");
  EXPECT_EQ(hints.find("waited for communication"), std::string::npos);  // the others only waited for rank 1
  EXPECT_IN(all_hints({rank_report(3, 6.4), rank_report(6, 3)}, facts_of(2)),
            "even the rank that waited least waited for communication 31%");
}

TEST(EndHints, DataCheckpointsEvaluationAndTheRest) {
  RankReport r = rank_report(3, 0);
  r.time.data = 1;
  r.time.checkpoint = 1;
  r.time.evaluation = 2;
  const std::string hints = all_hints({r}, facts_of(1));
  EXPECT_IN(hints, "reading data took 10%");
  EXPECT_IN(hints, "data.path");
  EXPECT_IN(hints, "checkpoints took 10%. Raise train.checkpoint_every");
  EXPECT_IN(hints, "evaluation took 20%. Raise train.eval_every");
  EXPECT_IN(hints, "25% went beside the steps");
  EXPECT_IN(hints, "run.log_every");
}

TEST(EndHints, MemoryAndMicroBatch) {
  RunFacts facts = facts_of(1);
  EXPECT_IN(all_hints({rank_report(9, 0, 7.5 * 1024 * 1024 * 1024)}, facts), "Lower train.micro_batch");
  facts.micro_batch = 1;
  facts.micro_steps = 24;
  facts.tokens_at_once = 128;
  EXPECT_IN(all_hints({rank_report(9, 0)}, facts),
            "only 128 tokens at once, 24 times a step, and memory is left. Raise train.micro_batch (now 1)");
  facts.ranks[0].ranks_on_host = 64;  // 128 MiB for each
  EXPECT_EQ(all_hints({rank_report(9, 0)}, facts).find("Raise train.micro_batch"), std::string::npos);
}

TEST(PeakResident, IsThatOfThisProcess) {
  const double before = peak_resident_bytes();
  EXPECT_GT(before, 1e6);
  {
    const std::string large(200 << 20, 'x');
    EXPECT_EQ(large.back(), 'x');
  }
  EXPECT_GT(peak_resident_bytes(), 200.0 * 1024 * 1024);
}

}  // namespace
}  // namespace nsp
