// Communication between the ranks of one group (kind "comm").
//
// A communicator serves memory of one place, fixed when it is made: host memory, or the memory of one Device (staged through
// pinned buffers if the transport cannot reach it). Every collective must be entered by all ranks of the group in the same
// order. It starts once its `After` is done and returns a Work at once; nothing blocks except the calls that say so.
// Sums are made in rank order in the given dtype, so the result does not depend on timing, and equals the serial sum.
// Thread: all calls from the rank's main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nsp/device.hpp"
#include "nsp/types.hpp"

namespace nsp {

class Communicator;

// A collective on its way.
class Work {
 public:
  virtual ~Work() = default;
  // True once the result is in place and ops enqueued from now on may use it. Never blocks and does not make progress
  // itself (Communicator::progress does). Throws Error(comm) if the collective failed.
  virtual bool done() = 0;
  // True once its own input is there: who waits for it from then on waits for other ranks, before that for the own device.
  virtual bool started() const noexcept { return true; }
};
// Shared because the caller, a collective that starts behind it and the engine's queue each need it until it is done.
using WorkPtr = std::shared_ptr<Work>;
using EventPtr = std::shared_ptr<Event>;

// What a collective waits for before it reads or writes its memory. Both may be empty.
struct After {
  EventPtr event;
  WorkPtr work;
};

// Something that moves on by being called: a communicator, or a chain of collectives and ops such as WeightedMean.
class Progressing {
 public:
  virtual ~Progressing() = default;
  // Moves every started piece of work on, without blocking. True if some is not done yet.
  virtual bool progress() = 0;
  // Grows with every message or collective that completes: tells a wait that gets on from one that is stuck.
  virtual uint64_t moves() const noexcept { return 0; }
  // True while data of the device is on its way between ranks. Small host vectors (decisions, norms) do not count.
  virtual bool in_flight() const noexcept { return false; }
};

class Communicator : public Progressing {
 public:
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;  // "world", "replicate", "sequence", ...; for messages

  // data [n] f32, f64, i32 or i64: replaced on every rank by the sum over ranks.
  virtual WorkPtr all_reduce(TensorView data, After after) = 0;
  // in [sum counts]: chunk i of all ranks is summed into rank i's out [counts[i]]; out may be the own chunk of in. counts is equal on all
  // ranks. The other chunks of in are left as they are.
  virtual WorkPtr reduce_scatter(TensorView in, std::vector<int64_t> counts, TensorView out, After after) = 0;
  // own [counts[rank]] of every rank is put one after the other into out [sum counts]; own may be its place in out.
  virtual WorkPtr all_gather(TensorView own, std::vector<int64_t> counts, TensorView out, After after) = 0;
  // in_counts[j] elements of in go to rank j; out receives out_counts[j] from rank j, in rank order. in and out do not overlap. Any dtype.
  virtual WorkPtr all_to_all(TensorView in, std::vector<int64_t> in_counts, TensorView out, std::vector<int64_t> out_counts,
                             After after) = 0;
  virtual WorkPtr broadcast(TensorView data, int root, After after) = 0;
  virtual WorkPtr send(TensorView data, int peer, After after) = 0;
  virtual WorkPtr recv(TensorView data, int peer, After after) = 0;

  // Prepares staging for collectives of up to `elements` fp32 elements, so that none allocates later. Returns the bytes of
  // staging that this communicator now holds (host memory).
  virtual int64_t reserve(int64_t elements) = 0;
  // Collective over this group, blocking: ranks of equal color form a group, ordered by key. device == nullptr: host memory.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name, Device* device) = 0;
  // Payload bytes that this rank handed to the transport for other ranks, since the communicator was made.
  virtual int64_t bytes_sent() const noexcept = 0;
  // Ends the whole job with this exit code, now. Does not return.
  [[noreturn]] virtual void abort(int code, const std::string& reason) = 0;
};

// The one host wait of nsp: used for works and device events alike. While it waits it drives progress() of all registered
// members (communicators first of all) and yields the core; when none of them has work it sleeps in the event, so that it takes no core
// from the thread that computes.
class HostWait {
 public:
  // Seconds since the beginning, for the breakdown of a run's time (docs/watching.md).
  struct Times {
    double exposed = 0;    // spent in wait() for works that had started: the host could do nothing but wait for other ranks
    double in_flight = 0;  // in which some member had data of the device on its way; seen, like ends, when progress() is called
  };
  const Times& times() const noexcept { return times_; }
  void add(Progressing* member);
  void remove(Progressing* member) noexcept;
  void wait(Work& work);
  void wait(const WorkPtr& work) {
    if (work) wait(*work);
  }
  void wait(const Event& event);
  // One progress() on every member; true if some has unfinished work. Called between modules.
  bool progress();

 private:
  template <class Done>
  void wait_until(Done done, const Event* event);
  void see_flight();
  std::vector<Progressing*> members_;
  Times times_;
  bool flying_ = false;  // at the last look
  std::chrono::steady_clock::time_point looked_;
};

// Enters host values into a sum over ranks and waits: for start-up and rare decisions, not for the loop's hot path.
void all_reduce_now(Communicator& comm, HostWait& wait, std::span<double> values);
void broadcast_now(Communicator& comm, HostWait& wait, void* data, int64_t bytes, int root);
std::vector<char> gather_now(Communicator& comm, HostWait& wait, const void* data, int64_t bytes);  // bytes of every rank, on every rank
void barrier_now(Communicator& comm, HostWait& wait);

// What a collective was, for the ring of entered collectives.
struct CollectiveRecord {
  uint64_t sequence = 0;  // per rank, over all communicators
  std::string communicator;
  const char* op = "";
  int64_t count = 0;
  DType dtype = DType::f32;
  uint32_t tag = 0;         // sequence number in its communicator, equal on all ranks
  std::string waiting_for;  // ranks whose data is missing, as last seen
};

// Ring of the collectives this rank entered last. Written by the main thread, read by the watchdog.
class CollectiveRing {
 public:
  virtual ~CollectiveRing() = default;
  virtual uint64_t entered(CollectiveRecord record) = 0;  // returns the sequence
  virtual void waiting(uint64_t sequence, const std::string& ranks) = 0;
  virtual void finished(uint64_t sequence) = 0;
};

struct CommContext {
  CollectiveRing& ring;
  int64_t block_elements = 512 * 1024;  // of the pieces that sums travel in; equal on all ranks
};

// The object of a comm plug-in: starts the transport and hands out the world.
class CommProvider {
 public:
  virtual ~CommProvider() = default;
  // Starts the transport. Throws Error(comm) if the launcher and this module do not fit together.
  virtual std::unique_ptr<Communicator> open(const CommContext& context) = 0;
  // Ends the transport: the very last act of a rank, after everything is durable. Collective, may block.
  virtual void close() noexcept = 0;
};

}  // namespace nsp
