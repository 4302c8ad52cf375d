// Brings samples to the device as this rank's part of a micro-batch.
//
// Two host buffers alternate, and a buffer is written again only after the device has read it, so loading runs ahead of the
// device by one micro-step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/model/module.hpp"
#include "nsp/communicator.hpp"
#include "nsp/data_source.hpp"

namespace nsp {

struct LoadedBatch {
  BatchShape shape;
  MicroBatch batch;
  int64_t counted = 0;  // targets that count, on this rank
};

class BatchLoader {
 public:
  // largest: of any micro-step. documents: attention stops at document borders. vocabulary: of the model; a token at or above
  // it is Error(input).
  BatchLoader(Device& device, Stream& stream, HostWait& wait, const BatchShape& largest, bool documents, int64_t vocabulary);
  // Waits until the next load need not wait: for the device, which is a micro-step behind.
  void wait_for_slot();
  // Enqueues the copies and returns views that later ops of the stream may read.
  LoadedBatch load(DataSource& source, std::span<const int64_t> samples);
  // The same for tokens that are given: [B, T] inputs and, where targets is not empty, labels.
  LoadedBatch load_tokens(std::span<const int32_t> tokens, int64_t sequences);
  // A piece of one sequence, of any length within the plan, whose first token has the position `first`. REQUIRES a rank that has
  // whole sequences, and no documents.
  LoadedBatch load_continuation(std::span<const int32_t> tokens, int64_t first);
  static int64_t device_bytes(const BatchShape& largest);
  static int64_t host_bytes(const BatchShape& largest);

 private:
  struct Slot {
    Buffer host, device;
    EventPtr copied;
  };
  Slot& next_slot();
  LoadedBatch place(Slot& slot, const BatchShape& shape) const;  // views into the slot's device buffer
  BatchShape shape_of(int64_t sequences) const;
  int32_t* host_part(Slot& slot, const TensorView& device_view) const;
  void enqueue(Slot& slot, LoadedBatch& loaded);

  Device& device_;
  Stream& stream_;
  HostWait& wait_;
  BatchShape largest_;
  bool documents_;
  int64_t vocabulary_;
  std::vector<Slot> slots_;
  std::size_t turn_ = 0;
  std::vector<int32_t> tokens_, starts_;
};

}  // namespace nsp
