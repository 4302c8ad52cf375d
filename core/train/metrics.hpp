// What a run tells: metrics.jsonl in the run directory and the step lines on standard output. Only rank 0 has one that writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "core/train/json_line.hpp"
#include "nsp/log.hpp"

namespace nsp {

// One finished step, as reduced over all ranks. Bytes are sent payload of all ranks together.
struct StepRecord {
  int64_t step = 0;      // finished steps, from 1
  double loss = 0;       // mean over the tokens of all replicas, nats per token; NaN if every replica skipped the step
  double grad_norm = 0;  // before clipping; token-weighted mean where replicas clip alone
  double lr = 0;
  int64_t tokens = 0;  // of this step
  double step_seconds = 0;
  double sync_bytes = 0, replica_bytes = 0, control_bytes = 0;
  double peak_share = 0;         // of the summed measured matmul peak of all ranks; 0 = not measured
  int64_t skipped_replicas = 0;  // whose update was skipped for NaN or infinity
  std::string synced;            // what the sync policy averaged: "x", "xu", ...
};

class Metrics {
 public:
  // path: of metrics.jsonl; empty: nothing is written and nothing printed (other ranks). resumed_step >= 0: the run goes on from
  // there, later lines are cut. Error(io) if the file cannot be written.
  Metrics(const std::string& path, int64_t resumed_step, int64_t log_every, bool progress_bar, int64_t steps, Log& log);

  void step(const StepRecord& record);
  void record(const JsonLine& line);  // any other kind; flushed at once
  void flush();                       // before a checkpoint: a run that is killed behind it goes on after lines that exist
  double seconds_in_steps() const noexcept { return seconds_; }
  int64_t tokens() const noexcept { return tokens_; }

 private:
  std::string step_text(const StepRecord& record) const;
  bool enabled_;
  std::ofstream out_;
  int64_t log_every_;
  bool bar_;
  int64_t steps_;
  Log& log_;
  double seconds_ = 0, recent_seconds_ = 0;  // of all steps of this process; running mean of a step
  int64_t tokens_ = 0;
};

// Lines of a metrics file up to and including `step`; a torn last line is dropped.
std::string lines_up_to(const std::string& path, int64_t step);

}  // namespace nsp
