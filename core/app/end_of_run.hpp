// The end of a run: where the time of all ranks went, for the log and for the `end` record of metrics.jsonl.
#pragma once

#include <string>

#include "core/app/world.hpp"
#include "core/plan/planner.hpp"
#include "core/train/breakdown.hpp"
#include "core/train/metrics.hpp"

namespace nsp {

struct RunEnd {
  Breakdown time;  // of this rank
  int64_t step = 0, first_step = 0;
  bool finished = false;  // else stopped early
};

// plugins: "sync,parallel,...", as the session names them.
RunFacts run_facts(const std::string& plugins, const Planned& planned, const Topology& topology);

// Collective over all ranks: gathers their times and writes the record. Returns the text for the log.
std::string report_end(World& world, Metrics& metrics, const RunEnd& end, const RunFacts& facts);

}  // namespace nsp
