// The communicator of nsp over any transport of non-blocking messages: all collectives as state machines that progress() drives.
//
// A collective starts when its After is done, whatever the order of entry; its messages carry tags of their own, so collectives
// overlap and end in any order. Device memory that the host cannot reach is copied through pinned staging on a stream of the
// communicator's own. Design: direct exchange (every rank talks to every rank), sums in rank order.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/operation.hpp"
#include "comm/staging.hpp"
#include "comm/transport.hpp"
#include "nsp/communicator.hpp"

namespace nsp {

class ExchangeCommunicator final : public Communicator, private MessagePort {
 public:
  // device: whose memory it serves, nullptr for host memory. context.block_elements is equal on all ranks.
  ExchangeCommunicator(std::unique_ptr<Transport> transport, std::string name, const CommContext& context, Device* device);
  ~ExchangeCommunicator() override;

  int rank() const noexcept override { return plan_.rank; }
  int size() const noexcept override { return plan_.size; }
  const std::string& name() const noexcept override { return name_; }
  WorkPtr all_reduce(TensorView data, After after) override;
  WorkPtr reduce_scatter(TensorView in, std::vector<int64_t> counts, TensorView out, After after) override;
  WorkPtr all_gather(TensorView own, std::vector<int64_t> counts, TensorView out, After after) override;
  WorkPtr all_to_all(TensorView in, std::vector<int64_t> in_counts, TensorView out, std::vector<int64_t> out_counts, After after) override;
  WorkPtr broadcast(TensorView data, int root, After after) override;
  WorkPtr send(TensorView data, int peer, After after) override;
  WorkPtr recv(TensorView data, int peer, After after) override;
  bool progress() override;
  int64_t reserve(int64_t elements) override;
  // REQUIRES that no collective of this communicator is unfinished.
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name, Device* device) override;
  int64_t bytes_sent() const noexcept override { return bytes_sent_; }
  uint64_t moves() const noexcept override { return moves_; }
  bool in_flight() const noexcept override;
  [[noreturn]] void abort(int code, const std::string& reason) override;

 private:
  enum class Stage { waiting, staging_in, exchanging, staging_out, done };
  // Operations whose tags must not meet: the collectives, or the messages of one peer and direction.
  static constexpr int kCollectives = -1;
  struct Entry {
    std::shared_ptr<Operation> operation;
    After after;
    int order = kCollectives;
    uint32_t number = 0;    // in its order; equal on all ranks that take part
    uint64_t sequence = 0;  // in the ring
    Stage stage = Stage::waiting;
    StagingLane* lane = nullptr;
    std::chrono::steady_clock::time_point reported;
  };

  WorkPtr enter(std::shared_ptr<Operation> operation, const char* op, int64_t count, DType dtype, int order, After after);
  WorkPtr point_to_point(TensorView data, int peer, bool sending, After after);
  bool advance(Entry& entry);
  bool may_start(const Entry& entry) const;
  bool start(Entry& entry);
  void copy(Entry& entry, bool in);
  void finish(Entry& entry);
  bool move_on();
  void report_waiting();
  void check_usable() const;
  void fail_all(const std::string& text) noexcept;
  TensorView dense(const char* op, const char* what, TensorView view, int64_t elements) const;

  uint32_t take_message(Operation& operation, const Message& message);
  void post_send(Operation& operation, const Message& message, const void* data, int64_t bytes) override;
  void post_receive(Operation& operation, const Message& message, void* data, int64_t bytes) override;

  std::string name_;
  CommContext context_;
  Device* device_;
  bool staged_;
  BlockPlan plan_;
  std::string failure_;
  StagingPool pool_;
  std::unique_ptr<Stream> stream_;  // ends before the staging that its copies use
  std::vector<Entry> active_;       // in order of entry
  std::vector<Message> messages_;   // by id
  std::vector<uint32_t> free_ids_, finished_ids_;
  uint32_t collectives_ = 0;
  std::vector<uint32_t> numbers_;  // [2 * size] sends to and receives from each peer
  int64_t bytes_sent_ = 0;
  uint64_t moves_ = 0;
  std::unique_ptr<Transport> transport_;  // last: it lets go of all memory first
};

}  // namespace nsp
