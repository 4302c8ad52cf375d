// Threads of one process as ranks: the exchange engine over mailboxes in memory. For tests, and for running several ranks
// without a launcher.
#pragma once

#include <memory>

#include "nsp/communicator.hpp"

namespace nsp {

class LocalGroup;

class LocalWorld {
 public:
  explicit LocalWorld(int ranks);
  ~LocalWorld();
  // The world communicator of one rank; once per rank, used by one thread. It may outlive the LocalWorld. block_elements
  // is equal on all ranks. device: whose memory it serves, nullptr for host memory.
  // abort() in any rank makes that call and every later call of every rank throw Error(comm).
  std::unique_ptr<Communicator> communicator(int rank, CollectiveRing& ring, int64_t block_elements = 512 * 1024, Device* device = nullptr);

 private:
  std::shared_ptr<LocalGroup> world_;  // shared with the communicators of all ranks, which end in any order
};

}  // namespace nsp
