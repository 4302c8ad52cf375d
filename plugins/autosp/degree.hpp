// Which sequence degree a job gets.
#pragma once

#include <string>

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

}  // namespace nsp
