// One finished step, as reduced over all ranks: what the log, metrics.jsonl, TensorBoard and the progress line tell of it.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

// Bytes are sent payload of all ranks together.
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

  double tokens_per_second() const { return step_seconds > 0 ? static_cast<double>(tokens) / step_seconds : 0; }
};

}  // namespace nsp
