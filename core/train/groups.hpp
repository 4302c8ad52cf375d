// The communicators of a job: which ranks talk to each other about what, and for memory of which place.
#pragma once

#include <cstdint>
#include <memory>

#include "core/plan/plan.hpp"
#include "nsp/communicator.hpp"

namespace nsp {

// Payload bytes that a rank handed to transports, by purpose.
struct ByteCounts {
  int64_t sync = 0;     // for the sync policy
  int64_t replica = 0;  // inside replicas: sequence, gradients, weights
  int64_t control = 0;  // group and job vectors, weight hashes, decisions
};

class Groups {
 public:
  // Collective over `world`. Registers every communicator with `wait`. sums_gradients: of the sync policy.
  Groups(Communicator& world, const JobPlan& plan, Device& device, bool sums_gradients, HostWait& wait);
  ~Groups();

  Communicator& world() { return world_; }       // all ranks, host memory: start-up, decisions, checkpoints
  Communicator& control() { return *control_; }  // all ranks, host memory: the job vector alone
  Communicator& group() { return *group_; }      // the ranks whose gradients are summed, host memory: the group vector
  Communicator& replica_host() { return *replica_host_; }
  Communicator& replica() { return *replica_; }      // ranks of this replica, device memory
  Communicator& replicate() { return *replicate_; }  // equal positions of all replicas, device memory
  ByteCounts bytes() const;

 private:
  Communicator& world_;
  HostWait& wait_;
  std::unique_ptr<Communicator> control_, group_, replica_host_, replica_, replicate_;
};

}  // namespace nsp
