// The communicator of a group of one rank: every collective is a copy from input to output, or nothing.
//
// A collective is done as soon as its After is; where input and output differ the copy is made by the host, or by the
// device's own stream if the host cannot reach the memory. Nothing is ever sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"

namespace nsp {

class SelfCommunicator final : public Communicator {
 public:
  // Ends the job; must not return.
  using Abort = std::function<void(int code, const std::string& reason)>;
  // device: whose memory it serves, nullptr for host memory.
  SelfCommunicator(std::string name, CollectiveRing& ring, Device* device, Abort abort);
  ~SelfCommunicator() override;

  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  const std::string& name() const noexcept override { return name_; }
  WorkPtr all_reduce(TensorView data, After after) override;
  WorkPtr reduce_scatter(TensorView in, std::vector<int64_t> counts, TensorView out, After after) override;
  WorkPtr all_gather(TensorView own, std::vector<int64_t> counts, TensorView out, After after) override;
  WorkPtr all_to_all(TensorView in, std::vector<int64_t> in_counts, TensorView out, std::vector<int64_t> out_counts, After after) override;
  WorkPtr broadcast(TensorView data, int root, After after) override;
  WorkPtr send(TensorView data, int peer, After after) override;  // throws Error(internal): there is nobody else
  WorkPtr recv(TensorView data, int peer, After after) override;
  bool progress() override;
  int64_t reserve(int64_t) override { return 0; }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name, Device* device) override;
  int64_t bytes_sent() const noexcept override { return 0; }
  uint64_t moves() const noexcept override { return moves_; }
  [[noreturn]] void abort(int code, const std::string& reason) override;

 private:
  class SelfWork;
  WorkPtr enter(const char* op, TensorView in, TensorView out, After after);
  bool advance(SelfWork& work);

  std::string name_;
  CollectiveRing& ring_;
  Device* device_;
  bool staged_;  // the host cannot reach the memory
  Abort abort_;
  std::vector<std::unique_ptr<Event>> free_events_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::shared_ptr<SelfWork>> active_;
  uint32_t number_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace nsp
