// The plan for people: what the plan verb prints, and plan.txt.
#pragma once

#include <string>

#include "core/plan/planner.hpp"

namespace nsp {

// Equal things are said once, so that the text stays short for any number of ranks.
std::string plan_report(const Planned& planned, const Transformer& model);

}  // namespace nsp
