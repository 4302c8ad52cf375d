#include "core/app/end_of_run.hpp"

#include <algorithm>
#include <cstring>

namespace nsp {
namespace {

JsonLine end_record(const RunEnd& end, const EndReport& report, const RunFacts& facts) {
  const Breakdown& b = report.mean;
  std::string hints;
  for (const std::string& hint : report.hints) hints += (hints.empty() ? "" : " | ") + hint;
  JsonLine line;
  line.add("kind", std::string("end"))
      .add("step", end.step)
      .add("outcome", std::string(end.finished ? "finished" : "stopped"))
      .add("steps", end.step - end.first_step)
      .add("ranks", static_cast<int64_t>(facts.ranks.size()))
      .add("seconds", b.total);
  line.add("compute", b.compute).add("data", b.data).add("optimizer", b.optimizer).add("exposed", b.exposed());
  line.add("sync_wait", b.averages).add("vectors", b.vectors).add("model_wait", b.exchanges).add("gather", b.gather);
  line.add("evaluation", b.evaluation).add("checkpoint", b.checkpoint).add("rest", b.rest()).add("hidden", b.hidden);
  line.add("imbalance", report.imbalance)
      .add("slowest_rank", static_cast<int64_t>(report.slowest))
      .add("slowest_host", facts.ranks[static_cast<std::size_t>(report.slowest)].host)
      .add("peak_resident", static_cast<int64_t>(report.peak_resident))
      .add("planned_bytes", facts.planned_bytes)
      .add("hints", hints);
  return line;
}

}  // namespace

RunFacts run_facts(const std::string& plugins, const Planned& planned, const Topology& topology) {
  const JobPlan& plan = planned.plan;
  RunFacts facts;
  const std::size_t first = plugins.find(','), second = plugins.find(',', first + 1);
  facts.sync = plugins.substr(0, first);
  facts.parallel = plugins.substr(first + 1, second - first - 1);
  facts.micro_batch = plan.micro_batch;
  const int64_t share = *std::max_element(plan.shares.begin(), plan.shares.end());
  facts.micro_steps = (share + plan.micro_batch - 1) / plan.micro_batch;
  facts.tokens_at_once = std::min(share, plan.micro_batch) * plan.context / plan.replica_size;
  facts.planned_bytes = planned.memory().bytes();
  for (const RankInfo& rank : topology.ranks) facts.ranks.push_back({rank.host, rank.host_memory_total, 1});
  for (const HostRanks& host : topology.hosts())
    for (const int rank : host.ranks) facts.ranks[static_cast<std::size_t>(rank)].ranks_on_host = static_cast<int>(host.ranks.size());
  return facts;
}

std::string report_end(World& world, Metrics& metrics, const RunEnd& end, const RunFacts& facts) {
  const RankReport own{end.time, peak_resident_bytes()};
  const std::vector<char> all = gather_now(world.comm(), world.wait(), &own, sizeof own);
  std::vector<RankReport> reports(all.size() / sizeof own);
  std::memcpy(reports.data(), all.data(), all.size());
  const EndReport report = summarize(reports, facts);
  metrics.record(end_record(end, report, facts));
  return end_text(report, reports, facts);
}

}  // namespace nsp
