// Host staging of one communicator: a few lanes, each holding what one collective needs. Lanes only grow, so that nothing is
// allocated once they fit.
//
// A bounded number of lanes must not let ranks wait for each other in a circle: the oldest unfinished collective may always
// take a lane, younger ones only if one is left for it. It is the same collective on all ranks, so it always gets on.
// Thread: that of the communicator.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "nsp/device.hpp"

namespace nsp {

class StagingLane {
 public:
  // device: whose pinned memory it is; nullptr: plain host memory.
  explicit StagingLane(Device* device);
  char* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return bytes_; }
  // Recorded behind the copies of the collective that holds the lane; only with a device.
  Event& event() const { return *event_; }

 private:
  friend class StagingPool;
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  void grow(int64_t bytes);
  Device* device_;
  std::unique_ptr<char, Free> host_;
  Buffer pinned_;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
  bool busy_ = false;
  std::unique_ptr<Event> event_;
};

class StagingPool {
 public:
  explicit StagingPool(Device* device);
  // Makes every lane at least this large. REQUIRES that no lane is held. Returns the bytes of all lanes.
  int64_t reserve(int64_t bytes);
  enum class Claim {
    oldest,   // may take the last free lane
    younger,  // leaves one
    outside   // not ordered against the others (send, recv): gets a lane of its own rather than wait
  };
  // A lane of at least this many bytes, or nullptr: try again when another one was given back. Throws Error(memory).
  StagingLane* take(int64_t bytes, Claim claim);
  void give_back(StagingLane* lane) noexcept { lane->busy_ = false; }

 private:
  Device* device_;
  std::vector<std::unique_ptr<StagingLane>> lanes_;
};

}  // namespace nsp
