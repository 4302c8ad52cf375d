#include "core/discover/thread_share.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr int most_threads = 512;  // the largest train.threads

std::string counted(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

struct Part {
  int threads;
  double cores;  // what the rank may use alone, as a fraction
};

Part part_of(const std::vector<CoreSet>& masks, std::size_t self, double cpu_limit) {
  const CoreSet& mine = masks[self];
  double cores = 0;
  for (std::size_t core = 0; core < mine.size(); ++core) {
    if (!mine[core]) continue;
    const auto sharers = std::count_if(masks.begin(), masks.end(), [core](const CoreSet& mask) { return mask[core]; });
    cores += 1.0 / static_cast<double>(sharers);
  }
  if (cpu_limit > 0) {
    const auto neighbours = std::count_if(masks.begin(), masks.end(), [&mine](const CoreSet& mask) { return (mask & mine).any(); });
    cores = std::min(cores, cpu_limit / static_cast<double>(std::max<std::ptrdiff_t>(1, neighbours)));
  }
  // The sum of n times 1/n may fall just short of 1.
  return {std::clamp(static_cast<int>(std::floor(cores + 1e-6)), 1, most_threads), cores};
}

}  // namespace

ThreadShare threads_for_rank(const std::vector<CoreSet>& masks, int self, double cpu_limit) {
  NSP_REQUIRE(self >= 0 && static_cast<std::size_t>(self) < masks.size(), "a rank is among the ranks of its host");
  const auto me = static_cast<std::size_t>(self);
  const Part mine = part_of(masks, me, cpu_limit);
  bool equal = true;
  for (std::size_t rank = 0; rank < masks.size(); ++rank) equal = equal && part_of(masks, rank, cpu_limit).threads == mine.threads;

  ThreadShare share;
  share.threads = mine.threads;
  share.more_ranks_than_cores = mine.cores < 1.0 - 1e-6;
  share.text = counted(masks[me].count(), "core") + " allowed (" + core_text(masks[me]) + ")";
  if (cpu_limit > 0) {
    char limit[64];
    std::snprintf(limit, sizeof limit, ", of which a control group grants %.2f", cpu_limit);
    share.text += limit;
  }
  share.text += ", " + counted(masks.size(), "rank") + " on this host, " + counted(static_cast<std::size_t>(mine.threads), "thread") +
                (masks.size() == 1 ? ""
                 : equal           ? " each"
                                   : " for this rank");
  if (share.more_ranks_than_cores) share.text += masks.size() > 1 ? "; more ranks than cores" : "; less than one core";
  return share;
}

}  // namespace nsp
