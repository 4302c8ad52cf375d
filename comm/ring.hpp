// The ring of collectives that a rank entered last: what a time-out prints, on every rank, to find the one that differs.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"

namespace nsp {

// Holds 64 entries. A new one takes the place of the oldest finished one, or of the newest if none is finished, so that the
// oldest unfinished collective is never lost. Thread: written by the main thread, read by any.
class FixedRing final : public CollectiveRing {
 public:
  struct Entry {
    CollectiveRecord record;  // sequence 0: unused
    bool finished = false;
    std::chrono::steady_clock::time_point entered, ended;
  };

  uint64_t entered(CollectiveRecord record) override;
  void waiting(uint64_t sequence, const std::string& ranks) override;
  void finished(uint64_t sequence) override;

  std::vector<Entry> entries() const;  // in order of entry
  uint64_t oldest_unfinished() const;  // its sequence; 0 = all are finished

 private:
  Entry* find(uint64_t sequence) noexcept;
  mutable std::mutex mutex_;
  std::array<Entry, 64> entries_;
  uint64_t last_ = 0;
};

// A call that blocks until all ranks of a group have made it - start, split, end - in the ring while it lasts, so that a
// time-out can name it like a collective.
class BlockingCall {
 public:
  // op: a literal.
  BlockingCall(CollectiveRing& ring, const std::string& communicator, const char* op)
      : ring_(ring), sequence_(ring.entered({0, communicator, op, 0, DType::u8, 0, "the other ranks"})) {}
  ~BlockingCall() { ring_.finished(sequence_); }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

 private:
  CollectiveRing& ring_;
  uint64_t sequence_;
};

}  // namespace nsp
