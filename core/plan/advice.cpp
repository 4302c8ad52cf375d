#include "core/plan/advice.hpp"

#include <algorithm>
#include <utility>

namespace nsp {
namespace {

class Search {
 public:
  Search(const PlanQuestion& question, Transformer& model, const Policies& policies)
      : question_(question), given_(question.micro_batch), model_(model), policies_(policies) {}

  // The options with which this dtype and this strategy (none: the one in use) fit; empty if they do not.
  std::string options(DType dtype, const std::optional<Alternative>& alternative) {
    ParallelStrategy& strategy = alternative ? alternative->strategy : policies_.strategy;
    const DType asked = std::exchange(question_.dtype, dtype);
    std::optional<Planned> planned = fitting(given_, strategy);
    const bool as_given = planned.has_value();
    // Memory grows with the micro-batch, so halving finds the largest that fits. An automatic one has been through that.
    for (int64_t low = 1, high = as_given ? 0 : std::min(given_, question_.global_batch) - 1; low <= high;) {
      const int64_t middle = (low + high + 1) / 2;
      std::optional<Planned> smaller = fitting(middle, strategy);
      (smaller ? low : high) = smaller ? middle + 1 : middle - 1;
      if (smaller) planned = std::move(smaller);
    }
    question_.dtype = asked;
    if (!planned || (as_given && dtype == asked && !alternative)) return "";
    std::string text;
    if (alternative) text += " " + alternative->how + " " + std::to_string(planned->plan.replica_size);
    if (dtype != asked) text += std::string(" --train.dtype ") + name_of(dtype);
    if (!as_given) text += " --train.micro_batch " + std::to_string(planned->plan.micro_batch);
    return text.substr(1);
  }

 private:
  // The plan with this micro-batch (0 = auto), if there is one and it fits.
  std::optional<Planned> fitting(int64_t micro_batch, ParallelStrategy& strategy) {
    question_.micro_batch = micro_batch;
    try {
      Planned planned = plan_job(question_, model_, {policies_.sync, strategy, policies_.cache, policies_.optimizer});
      if (all_fit(planned.checks)) return planned;
    } catch (const Error&) {
      // This layout cannot be; others may.
    }
    return std::nullopt;
  }

  PlanQuestion question_;
  const int64_t given_;
  Transformer& model_;
  const Policies& policies_;
};

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
                           const std::optional<Alternative>& alternative) {
  Search search(question, model, policies);
  std::string text;
  const auto add = [&](const std::string& proposal) {
    if (!proposal.empty()) text += (text.empty() ? "" : "; ") + proposal;
    return !proposal.empty();
  };
  const bool halves = question.dtype != DType::bf16;
  add(search.options(question.dtype, std::nullopt));
  bool one = halves && add(search.options(DType::bf16, std::nullopt));
  if (alternative) one = add(search.options(question.dtype, alternative)) || one;
  if (alternative && halves && !one) add(search.options(DType::bf16, alternative));
  add(fewer_ranks(planned));
  if (text.empty())
    return "No micro-batch and no sequence degree of these ranks fits, in bf16 neither. Use a smaller model or train.context, more ranks "
           "with --plugins autosp, or devices with more memory.";
  return "What fits: " + text + ".";
}

}  // namespace nsp
