// Where declared states live and how they are reached (kind "memory").
//
// Core allocates the storage of every state kind before the first step. Whoever works on a range acquires it for a stream,
// uses the view, and releases it, saying whether it wrote. The default, `resident`, keeps everything on the device: acquire
// and release cost nothing. Other plug-ins may move segments between device, pinned, host and file.
// Thread: main thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nsp/device.hpp"
#include "nsp/types.hpp"

namespace nsp {

// Index of a declared state; weights and gradients have ids too.
using StateId = int;

// Core's arenas.
class StateStorage {
 public:
  virtual ~StateStorage() = default;
  // The part of a state's storage that holds `range`, 1-D. REQUIRES that this rank holds the range.
  virtual TensorView view(StateId state, Range range) const = 0;
};

struct CacheCounters {
  int64_t hits = 0;          // acquires that found the range on the device
  int64_t misses = 0;        // acquires that had to move it
  int64_t bytes_moved = 0;   // between tiers
  double stall_seconds = 0;  // time that streams waited for a move
};

class LocCache {
 public:
  virtual ~LocCache() = default;
  virtual void open(const StateStorage& storage) = 0;
  // The tier a state of a segment is kept in, for the memory table: "device", "pinned", "host", "file".
  virtual std::string place(const StateDecl& state, int segment) const = 0;
  // A hint that the range is wanted soon.
  virtual void prefetch(StateId state, Range range) = 0;
  // The range on the device, ready for ops that are enqueued on `stream` from now on; valid until release.
  virtual TensorView acquire(StateId state, Range range, Stream& stream) = 0;
  // Once for each acquire. dirty: it was written by ops on the stream given to acquire.
  virtual void release(StateId state, Range range, bool dirty) = 0;
  // After a step changed the weights of a segment: device copies made from its master are stale.
  virtual void invalidate(int segment) = 0;
  virtual CacheCounters counters() const = 0;
};

}  // namespace nsp
