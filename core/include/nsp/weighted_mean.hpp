// The weighted mean of one range over the replicas, as a chain of collectives and ops that moves on by progress().
//
// Each bucket: all_to_all of its R parts; the owner of a part combines them on the device in replica order,
//   mean = x_0 + sum_{m>0} w_m (x_m - x_0),
// so that identical replicas stay bit-identical; all_gather of the parts. All ranks together send 2 4n bytes.
// Buckets run one after the other, so every rank enters the same collectives in the same order. Since each rank enters them at
// times of its own, REQUIRES that nobody else enters collectives on that communicator until idle().
// Thread: main thread. Register it with the HostWait whose loop shall drive it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "nsp/communicator.hpp"
#include "nsp/device.hpp"

namespace nsp {

class WeightedMean : public Progressing {
 public:
  // replicate: the group over replicas, for device memory. weights: w_m of every replica, summing to 1; equal on all ranks.
  // stream: where combining ops are enqueued. bucket_elements: the size of the staging buffer that is allocated here.
  WeightedMean(Communicator& replicate, std::vector<double> weights, Stream& stream, int64_t bucket_elements);
  ~WeightedMean() override;

  // Enqueues: out = weighted mean of `in` over the replicas. Both 1-D fp32 of equal length; out may be in. Starts once
  // `after` is done. The views must stay valid until idle().
  void add(TensorView in, TensorView out, EventPtr after);
  bool progress() override;
  bool idle() const noexcept { return tasks_.empty(); }
  // Waits until idle, with everything that `wait` drives going on meanwhile. Ops enqueued afterwards see the means. REQUIRES that
  // it is registered there.
  void finish(HostWait& wait);
  int64_t staging_bytes() const noexcept { return staging_.bytes(); }

 private:
  struct Task;
  void start_bucket(Task& task);
  void combine(Task& task);
  Communicator& replicate_;
  std::vector<double> weights_;
  Stream& stream_;
  int64_t bucket_elements_;
  Buffer staging_;
  std::deque<std::unique_ptr<Task>> tasks_;
};

}  // namespace nsp
