// Loss on held-out data, and a sample of generated text. Collective over all ranks, on the weights that are installed.
#pragma once

#include <string>
#include <vector>

#include "core/model/generate.hpp"
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

// Mean loss over the first min(batches * global batch, all) sequences of the held-out data, spread over the replicas.
EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t batches, DeviceScalars& loss);

// Continues a prompt by `count` tokens. Every rank of a replica takes part and gets the same result. The window slides by half a
// context when it is full. after_token may stop the continuation by returning false.
class TextGenerator {
 public:
  TextGenerator(TrainParts& parts, BatchLoader& loader);
  std::vector<int32_t> generate(const std::vector<int32_t>& prompt, int64_t count, const Sampling& sampling,
                                const std::function<bool(int32_t)>& after_token = {});

 private:
  int32_t next(const std::vector<int32_t>& window, int64_t length, const Sampling& sampling, uint64_t position);
  TrainParts& parts_;
  BatchLoader& loader_;
  Buffer logits_, host_logits_;
};

}  // namespace nsp
