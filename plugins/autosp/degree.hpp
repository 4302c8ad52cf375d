// Which sequence degree a job gets, and how tokens and heads are cut at a degree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/parallel_strategy.hpp"

namespace nsp {

struct ChosenDegree {
  int degree = 1;
  std::string reason;  // what was chosen and why smaller degrees were not; printed
};

// Checks a degree that the user gave. Error(usage) says why it cannot be and what can.
ChosenDegree check_degree(const ParallelQuestion& question, int degree);

// The rule for `auto`; README.md states it. Error(usage) if no degree fits the job's shape.
ChosenDegree choose_degree(const ParallelQuestion& question);

// Near-equal cuts of n things over `parts`: part i has [cuts[i], cuts[i+1]).
std::vector<int64_t> near_equal_cuts(int64_t n, int parts);

}  // namespace nsp
