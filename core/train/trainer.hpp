// The scheduler: one loop over steps, as design and docs/tour.md tell it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/data/batch_order.hpp"
#include "core/train/breakdown.hpp"
#include "core/train/checkpointer.hpp"
#include "core/train/evaluate.hpp"
#include "core/train/metrics.hpp"
#include "core/train/schedule.hpp"
#include "core/train/signals.hpp"

namespace nsp {

struct TrainSettings {
  int64_t steps = 1;
  LrSchedule schedule;
  double clip = 1.0;  // of the gradient's L2 norm; 0 = off
  int64_t eval_every = 250, eval_batches = 20;
  int64_t checkpoint_every = 500;
  int64_t max_bad_steps = 20;
  int64_t verify_every = 100;  // steps between comparisons of weight hashes; 0 = never
  double flops_per_token = 0;
  double peak_flops = 0;  // of all ranks together, measured; 0 = not measured
};

enum class Outcome { finished, stopped };

class Trainer {
 public:
  struct Io {
    DataSource& train;
    DataSource* validation;  // nullptr: nothing is held out
    const BatchOrder& order;
    BatchLoader& loader;
    Metrics& metrics;
    MeanWeights& mean;
    Checkpointer& checkpointer;
    StopRequests& requests;
    // Told the loss and gradient norm of this rank's group after each step; may be empty.
    std::function<void(int64_t t, double loss, double norm)> on_group;
  };
  Trainer(TrainParts& parts, Io io, const TrainSettings& settings, const TrainState& state);

  Outcome run();
  const TrainState& state() const noexcept { return state_; }
  const Breakdown& breakdown() const noexcept { return time_; }

 private:
  struct GroupResult {  // of the group vector
    double loss_sum = 0, tokens = 0, norm = 0;
    bool bad = false;
  };
  struct PendingJob {  // a job vector on its way
    std::vector<double> values;
    WorkPtr work;
    StepRecord record;
  };

  void forward_and_backward(int64_t t);
  GroupResult reduce_group_vector();
  void update(const GroupResult& group);
  void start_job_vector(const GroupResult& group, int64_t t, const ByteCounts& before, double seconds);
  void read_job_vector();
  void evaluate_at_start();
  void evaluate_now(int64_t step);
  void checkpoint_now(int64_t step);
  void verify_weights(int64_t step);
  void begin_stop(const std::string& what);
  void throw_if_diverged();

  TrainParts& parts_;
  Io io_;
  TrainSettings settings_;
  TrainState state_;
  DeviceScalars scalars_;  // 0: loss sum, 1: sum of squares
  int64_t counted_ = 0;    // targets of this rank in this step
  std::vector<After> owner_sums_;
  std::optional<PendingJob> pending_;
  bool stop_ = false, checkpoint_asked_ = false, diverged_ = false;
  int64_t last_checkpoint_ = -1, last_evaluation_ = -1;
  Breakdown time_;
};

// FNV-1a style hash of the weights that forward reads on this rank, bit by bit, in segment order.
uint64_t weight_hash(TrainParts& parts);

}  // namespace nsp
