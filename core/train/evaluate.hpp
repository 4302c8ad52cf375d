// Loss on held-out data. Collective over all ranks, on the weights that are installed.
#pragma once

#include <string>
#include <vector>

#include "core/train/batch_loader.hpp"
#include "core/train/parts.hpp"

namespace nsp {

// f64 values that ops accumulate on the device and the host reads.
class DeviceScalars {
 public:
  DeviceScalars(Device& device, Stream& stream, HostWait& wait, int count, const std::string& name);
  TensorView at(int i) const;  // f64 [1]
  void zero();                 // enqueued
  const double* read();        // copies to the host and waits
  static int64_t bytes(int count) { return 8 * count; }

 private:
  Stream& stream_;
  HostWait& wait_;
  Device& device_;
  Buffer device_values_, host_values_;
  int count_;
};

struct EvalResult {
  double loss = 0;  // mean over counted tokens
  int64_t tokens = 0;
};

// Mean loss over the first min(sequences, all) sequences of the held-out data, spread over the replicas.
EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t sequences, DeviceScalars& loss);

}  // namespace nsp
