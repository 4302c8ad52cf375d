#include "core/plan/advice.hpp"

#include <algorithm>
#include <optional>

namespace nsp {
namespace {

class Search {
 public:
  Search(const PlanQuestion& question, Transformer& model, const Policies& policies)
      : question_(question), model_(model), policies_(policies) {}

  // The plan with this micro-batch (0 = auto), if there is one and it fits.
  std::optional<Planned> fitting(int64_t micro_batch, ParallelStrategy& strategy) {
    PlanQuestion question = question_;
    question.micro_batch = micro_batch;
    try {
      Planned planned = plan_job(question, model_, {policies_.sync, strategy, policies_.cache, policies_.optimizer});
      if (all_fit(planned.checks)) return planned;
    } catch (const Error&) {
      // This layout cannot be; others may.
    }
    return std::nullopt;
  }

  // Memory grows with the micro-batch, so halving finds the largest that fits; 0 if none does.
  int64_t largest_micro_batch(int64_t below) {
    int64_t fits = 0;
    for (int64_t low = 1, high = below - 1; low <= high;) {
      const int64_t middle = (low + high + 1) / 2;
      if (fitting(middle, policies_.strategy)) {
        fits = middle;
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return fits;
  }

 private:
  const PlanQuestion& question_;
  Transformer& model_;
  const Policies& policies_;
};

std::string by_alternative(Search& search, const PlanQuestion& question, const Alternative& alternative) {
  for (const int64_t micro_batch : {question.micro_batch, int64_t{1}})
    if (const std::optional<Planned> planned = search.fitting(micro_batch, alternative.strategy); planned && planned->plan.replica_size > 1)
      return alternative.how + " fits with " + std::to_string(planned->plan.replica_size) + " ranks to a replica" +
             (micro_batch == 1 && question.micro_batch != 1 ? " and --train.micro_batch 1" : "");
  return "";
}

// Hosts whose processor computes: their memory is shared by the ranks.
std::string fewer_ranks(const Planned& planned) {
  for (const HostRanks& host : planned.topology.hosts()) {
    const RankInfo& info = planned.topology.ranks[static_cast<std::size_t>(host.ranks.front())];
    if (info.device_kind != "cpu" || info.host_memory_available <= 0) continue;
    const int64_t ranks = info.host_memory_available / planned.memory().bytes();
    if (ranks >= 1 && ranks < static_cast<int64_t>(host.ranks.size())) return std::to_string(ranks) + " of such ranks fit on a host";
  }
  return "";
}

}  // namespace

std::string what_would_fit(const Planned& planned, const PlanQuestion& question, Transformer& model, const Policies& policies,
                           const std::vector<Alternative>& alternatives) {
  Search search(question, model, policies);
  std::string text;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += (text.empty() ? "" : "; ") + line;
  };
  if (const int64_t micro_batch = search.largest_micro_batch(planned.plan.micro_batch); micro_batch > 0)
    add("--train.micro_batch " + std::to_string(micro_batch) + " fits");
  for (const Alternative& alternative : alternatives) add(by_alternative(search, question, alternative));
  add(fewer_ranks(planned));
  if (text.empty())
    return "No smaller micro-batch and no sequence degree of these ranks fits. Use a smaller model or train.context, more ranks with "
           "--plugins autosp, or devices with more memory.";
  return "What fits: " + text + ".";
}

}  // namespace nsp
