// Everything a training job is made of, built once by core/app and handed to the scheduler and its helpers by reference.
#pragma once

#include "core/model/transformer.hpp"
#include "core/plan/plan.hpp"
#include "core/tensor/activations.hpp"
#include "core/tensor/state_arena.hpp"
#include "core/train/groups.hpp"
#include "nsp/log.hpp"
#include "nsp/optimizer.hpp"
#include "nsp/parallel_strategy.hpp"
#include "nsp/sync_policy.hpp"

namespace nsp {

struct TrainParts {
  const JobPlan& plan;
  int rank;
  Groups& groups;
  Device& device;
  Stream& stream;
  HostWait& wait;
  Transformer& model;
  StateArena& arena;
  LocCache& cache;
  ParamAccess& params;
  Workspace& workspace;
  ParallelStrategy& strategy;
  SyncPolicy& sync;
  Optimizer& optimizer;
  StateId master;                            // the fp32 weights that are trained; weights_state itself in fp32
  std::vector<NamedState> optimizer_states;  // in the order of Optimizer::declare
  StateId spare;                             // owned fp32 state that may be overwritten between steps; -1 where replicas never differ
  Log& log;

  int replica() const { return plan.replica_of(rank); }
  int position() const { return plan.position_of(rank); }
  bool replicas_differ() const { return sync.replicas_differ(plan.replicas); }
  const std::vector<Range>& owned() const { return arena.owned(); }
};

// Sums of owned gradient ranges, owned weights gathered: the in-replica half of every step.
// Starts the sum of a segment's gradients to their owners; nothing to do in a replica of one rank. Behind the returned
// conditions the owned range holds the sums.
After sum_to_owners(TrainParts& parts, int segment, EventPtr gradients_written);
// Brings what the owners made of their master ranges to the weights that forward reads, on every rank of the replica: cast where
// the dtypes differ, then gathered, in the weights' dtype. Waits until they are there. Collective in the replica.
void gather_weights(TrainParts& parts);
// An event behind everything that is enqueued on the stream now.
EventPtr record_event(Device& device, Stream& stream, const char* name);
// The first rank's failure text, with its rank, on every rank; empty if none failed. Collective over all ranks.
std::string first_failure(TrainParts& parts, const std::string& failure);

}  // namespace nsp
