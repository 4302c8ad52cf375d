// How many compute threads a rank gets: what the launcher left it.
#pragma once

#include <string>
#include <vector>

#include "core/discover/core_set.hpp"

namespace nsp {

struct ThreadShare {
  int threads = 1;
  bool more_ranks_than_cores = false;
  // To print: "2 cores allowed (0-1), 8 ranks on this host, 1 thread each; more ranks than cores".
  std::string text;
};

// masks: the allowed cores of every rank on this host; self: this rank's place among them. A core that several ranks may use is
// divided among them; so ranks that the launcher bound apart get their whole mask, and ranks that share one mask an equal part.
// cpu_limit: processor time per time that a control group grants to this rank and to those it shares cores with; 0 = no limit.
// At most 512 threads, as many as the pool of the CPU backend can hold. REQUIRES 0 <= self < masks.size().
ThreadShare threads_for_rank(const std::vector<CoreSet>& masks, int self, double cpu_limit);

}  // namespace nsp
