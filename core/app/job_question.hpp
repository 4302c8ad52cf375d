// What train and plan ask the planner, and what they say if the answer does not fit.
#pragma once

#include "core/app/session.hpp"
#include "core/discover/topology.hpp"
#include "core/model/spec.hpp"

namespace nsp {

// The question that the configuration asks for these ranks; the memory budget is that of the scarcest.
PlanQuestion job_question(const Session& session, const ModelSpec& spec, Topology topology);

// Throws Error(does_not_fit) unless the plan fits; its text says what would, with the parallel strategies at hand.
void require_fit_or_advise(Session& session, const Planned& planned, const PlanQuestion& question, Transformer& model,
                           const Policies& policies);

}  // namespace nsp
