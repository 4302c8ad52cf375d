// Runs a function as several ranks, one thread each, over a LocalWorld.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "comm/local.hpp"
#include "tests/comm/collective_checks.hpp"

namespace nsp::test {

struct Rank {
  Communicator& comm;
  HostWait& wait;
  NoRing& ring;
};

// device: gives each rank its device, or nullptr. An exception of a rank fails the test and ends the other ranks.
inline void run_ranks(int ranks, int64_t block_elements, const std::function<void(Rank)>& body,
                      const std::function<std::unique_ptr<Device>(int)>& device = nullptr) {
  LocalWorld world(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      NoRing ring;
      const std::unique_ptr<Device> own = device ? device(r) : nullptr;
      const std::unique_ptr<Communicator> comm = world.communicator(r, ring, block_elements, own.get());
      HostWait wait;
      wait.add(comm.get());
      try {
        body({*comm, wait, ring});
        EXPECT_EQ(ring.unfinished(), 0u);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
        try {
          comm->abort(1, error.what());
        } catch (const Error&) {
          // That is how it ends a job of threads.
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace nsp::test
