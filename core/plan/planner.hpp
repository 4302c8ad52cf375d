// From the wishes of the configuration to the plan: who does what, which states exist, what memory that takes, what it sends.
// Needs no devices and no communication, so `nsp_app plan` and every rank of a run get the same answer from the same question.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/model/transformer.hpp"
#include "core/plan/budget.hpp"
#include "core/plan/checkpoint_size.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/links.hpp"
#include "core/plan/plan.hpp"
#include "nsp/memory.hpp"
#include "nsp/optimizer.hpp"
#include "nsp/parallel_strategy.hpp"
#include "nsp/sync_policy.hpp"

namespace nsp {

struct PlanQuestion {
  int ranks = 1;
  Topology topology;  // of these ranks; empty: all on one host of which nothing is known
  int64_t global_batch = 1;
  int64_t micro_batch = 0;  // 0 = auto: about as many tokens as fill a device; fewer if only they fit into memory
  int64_t context = 1;
  DType dtype = DType::f32;  // of weights and activations
  int threads = 1;           // of each rank, and its backend, where the topology is empty
  std::string backend;
  std::string plugins;          // in use, as --plugins names them
  int64_t bucket_elements = 1;  // of traffic, fp32
  int64_t memory_budget = 0;    // bytes a rank may use; 0 = not known
  // Adds what the training loop itself will allocate for micro-steps of this shape; the loop lies above the plan.
  std::function<void(MemoryTable& table, const BatchShape& shape)> loop_memory;
};

// The plug-ins that decide; owned by the caller.
struct Policies {
  SyncPolicy& sync;
  ParallelStrategy& strategy;
  LocCache& cache;
  Optimizer& optimizer;
};

struct Planned {
  JobPlan plan;
  Topology topology;
  std::vector<StateDecl> states;  // index = StateId; weights and gradients first
  StateId master = 0;             // the fp32 weights, core/tensor/core_states.hpp
  std::vector<StateId> optimizer_states;
  std::vector<StateId> sync_states;
  StateId spare = -1;                  // owned fp32 state for evaluation on the mean; -1 where replicas never differ
  std::vector<HeadShare> head_shares;  // by position in a replica
  std::vector<PositionKind> kinds;     // of positions by their memory; the one that needs most first
  std::vector<MemoryCheck> checks;     // on this topology
  Links links;                         // bytes a step
  CheckpointSize checkpoint;
  int64_t usual_micro_batch = 0;                                    // that auto takes where memory suffices; 0 = it was taken
  const MemoryTable& memory() const { return kinds.at(0).memory; }  // of the rank that needs most
};

Planned plan_job(const PlanQuestion& question, Transformer& model, const Policies& policies);

// Near-equal cuts of `total` over `parts`.
std::vector<int64_t> equal_cuts(int64_t total, int parts);

}  // namespace nsp
