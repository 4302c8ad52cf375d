// What every communicator must do, as checks that all ranks of it call together. Used over threads and over MPI.
#pragma once

#include <cstdint>

#include "nsp/communicator.hpp"

namespace nsp::test {

// A work that is done when the test says so.
class Gate final : public Work {
 public:
  bool done() override { return open; }
  bool open = false;
};

// A ring that remembers nothing.
class NoRing final : public CollectiveRing {
 public:
  uint64_t entered(CollectiveRecord) override { return ++sequence_; }
  void waiting(uint64_t, const std::string&) override {}
  void finished(uint64_t) override { ++finished_; }
  uint64_t unfinished() const { return sequence_ - finished_; }

 private:
  uint64_t sequence_ = 0, finished_ = 0;
};

// Sums equal the serial sum in rank order in all bits, for all dtypes that can be summed. most: the largest number of elements.
void check_all_reduce(Communicator& comm, HostWait& wait, int64_t most);
void check_reduce_scatter(Communicator& comm, HostWait& wait, int64_t most);
void check_all_gather(Communicator& comm, HostWait& wait, int64_t most);
void check_all_to_all(Communicator& comm, HostWait& wait, int64_t most);
void check_broadcast(Communicator& comm, HostWait& wait, int64_t most);
void check_send_recv(Communicator& comm, HostWait& wait, int64_t most);
// Many collectives at once, whose inputs become ready in another order on each rank.
void check_overlap(Communicator& comm, HostWait& wait, int64_t elements);
// The bytes of all ranks together are those of the formulas.
void check_bytes(Communicator& comm, HostWait& wait);
void check_split(Communicator& comm, HostWait& wait);
void check_helpers(Communicator& comm, HostWait& wait);
void check_errors(Communicator& comm);

}  // namespace nsp::test
