// One rank of a job, assembled from a plan: stream, communicators, arenas, workspace, and the opened policies. The order of
// members is the order of construction; everything is allocated here and nothing afterwards.
#pragma once

#include <memory>

#include "core/plan/planner.hpp"
#include "core/train/param_store.hpp"
#include "core/train/parts.hpp"

namespace nsp {

// Bytes of staging and data buffers of the training loop, for PlanQuestion::loop_memory.
void add_loop_memory(MemoryTable& table, const BatchShape& shape, const ModelSpec& spec);

class Job {
 public:
  // Collective over world. The references stay valid for the job's life.
  Job(const Planned& planned, int64_t bucket_elements, Communicator& world, Device& device, Transformer& model, const Policies& policies,
      HostWait& wait, Log& log);

  TrainParts& parts() { return *parts_; }
  // Waits for everything that is queued, when it dies.
  class Drain {
   public:
    explicit Drain(Job& job) : job_(job) {}
    ~Drain();
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

   private:
    Job& job_;
  };
  BatchShape shape() const { return shape_; }
  // Fills the weights from host code: a function of (seed, tensor name, element). Collective.
  void initialize_weights(uint64_t seed);

 private:
  Stream stream_;
  Groups groups_;
  StateArena arena_;
  BatchShape shape_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<ParamStore> params_;
  std::unique_ptr<TrainParts> parts_;
};

}  // namespace nsp
