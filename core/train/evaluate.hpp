// Loss on held-out data. Collective over all ranks, on the weights that are installed.
#pragma once

#include <functional>
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
  bool left = false;  // a rank wanted to stop: all have left the evaluation together, and there is no loss
};

// Mean loss over the first min(sequences, all) sequences of the held-out data, spread over the replicas. stop: whether this rank wants
// to leave, asked before each batch; obeyed by all ranks a batch later.
EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t sequences, DeviceScalars& loss,
                    const std::function<bool()>& stop = {});

}  // namespace nsp
