// One collective of the exchange engine: a state machine that posts messages and is told when they complete.
//
// The communicator decides when it starts, gives it staging memory, copies device memory in and out, and drives it; the
// operation knows only host addresses. Thread: that of its communicator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"

namespace nsp {

class Operation;

// In the order in which a missing message explains a delay: a contribution that has not come points at its sender, while a
// result that has not come may be late because its sum waits for somebody else.
enum class MessageKind : uint8_t { contribution_in, contribution_out, result_in, result_out };

struct Message {
  Operation* operation = nullptr;  // nullptr: a free entry
  MessageKind kind = MessageKind::contribution_in;
  int peer = 0;
  int64_t block = 0;
};

// Posts messages for an operation; they come back through Operation::finished.
class MessagePort {
 public:
  virtual void post_send(Operation& operation, const Message& message, const void* data, int64_t bytes) = 0;
  virtual void post_receive(Operation& operation, const Message& message, void* data, int64_t bytes) = 0;

 protected:
  ~MessagePort() = default;
};

// How long messages are cut, the same on all ranks of a group.
struct BlockPlan {
  int rank = 0, size = 1;
  int64_t block = 0;  // elements a message
  int window = 0;     // blocks of a sum that are in flight per peer; each needs staging
};

// A copy between the memory of the communicator's device and its host staging.
struct StagedCopy {
  void* memory;
  void* staged;
  int64_t bytes;
};

class Operation : public Work {
 public:
  bool done() override {
    if (!failure_.empty()) throw Error(ErrorKind::comm, failure_);
    return done_;
  }

  bool started() const noexcept override { return started_; }

  // Host staging that it needs, in bytes. staged: its memory is not host addressable and must be staged as a whole.
  virtual int64_t staging_bytes(bool staged) const = 0;
  // Given its staging; fills copies_in() and copies_out() if staged.
  virtual void place(char* staging, bool staged) = 0;
  // Its input is there: post the first messages.
  virtual void begin(MessagePort& port) = 0;
  virtual void finished(MessagePort& port, const Message& message) = 0;
  // Every message has completed and the result is in host memory.
  bool exchanged() const noexcept { return remaining_ == 0; }

  const std::vector<StagedCopy>& copies_in() const noexcept { return copies_in_; }
  const std::vector<StagedCopy>& copies_out() const noexcept { return copies_out_; }
  // The part of a message's tag that is the same for all messages of the operation.
  int tag_base() const noexcept { return tag_base_; }
  void set_tag_base(int tag_base) noexcept { tag_base_ = tag_base; }
  void set_started() noexcept { started_ = true; }
  void set_done() noexcept { done_ = true; }
  void fail(const std::string& text) { failure_ = text; }

 protected:
  std::vector<StagedCopy> copies_in_, copies_out_;
  int64_t remaining_ = 0;  // messages that have not completed, posted or not

 private:
  int tag_base_ = 0;
  bool started_ = false, done_ = false;
  std::string failure_;
};

inline int64_t blocks_of(int64_t elements, int64_t block) noexcept {
  return (elements + block - 1) / block;
}

}  // namespace nsp
