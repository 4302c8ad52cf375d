// The synchronisation policy (kind "sync"): what replicas exchange, and when. It owns the *replicate* axis only and sees owned
// ranges only, so its traffic does not grow with the size of a replica.
//
// A step t = 0, 1, ... (t = finished steps) is: begin_step(t); forward and backward, with gradient_ready for each segment on
// the last micro-step; finish_step(t); optimizer. A state with period K is due iff t > 0 and t mod K = 0.
// begin_step and gradient_ready never block; finish_step may wait through context.wait. Every decision that precedes a
// collective is a function of (t, plan) or of values that were already reduced. Thread: main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"
#include "nsp/memory.hpp"
#include "nsp/types.hpp"

namespace nsp {

// A declared state with the id under which LocCache knows it.
struct NamedState {
  StateId id = 0;
  StateDecl decl;
};

// What a policy works on. References stay valid for its life.
struct SyncContext {
  int replica = 0, replicas = 1;
  std::vector<double> weights;     // w_m = share_m / global batch, for every replica; from the plan
  Communicator& replicate;         // over replicas, ranks of equal position; device memory
  std::vector<Range> owned;        // per segment, what this rank owns (maybe empty); equal at equal position in every replica
  std::vector<NamedState> states;  // "weights" first (the fp32 ones that are trained), then the optimizer's, then this policy's
  LocCache& cache;
  Stream& stream;
  HostWait& wait;
  int64_t bucket_elements = 0;  // fp32 elements a bucket of traffic may have
};

// One line of the plan: traffic between replicas.
struct TrafficLine {
  std::string what;           // "mean of weights every 256 steps"
  double bytes_per_step = 0;  // all ranks together, sent, averaged over steps
  double bytes_at_once = 0;   // in a step where it happens
  bool summary = false;       // sums up other lines, so it does not count again
};

class SyncPolicy {
 public:
  virtual ~SyncPolicy() = default;
  // True: gradients are summed over all replicas each step, so replicas stay equal (ddp).
  virtual bool sums_gradients() const = 0;
  // True: replicas may hold different values between steps, so checkpoints keep each replica's own states.
  virtual bool replicas_differ(int replicas) const = 0;
  // Own states. Called before the plan with the optimizer's declared states; Error(usage) if options contradict them.
  virtual std::vector<StateDecl> declare(const std::vector<StateDecl>& optimizer_states, int replicas) = 0;
  // parameters: of one replica. The plan takes the bytes of a line as spread evenly over the pairs of ranks that exchange, as
  // sums and weighted means are.
  virtual std::vector<TrafficLine> traffic(int64_t parameters, int replicas) const = 0;
  // Device memory that it will hold besides states, in bytes; for the plan.
  virtual int64_t staging_bytes(int replicas, int64_t bucket_elements) const = 0;

  virtual void open(const SyncContext& context) = 0;
  virtual void begin_step(int64_t t) = 0;
  // gradient: the owned range's sums, valid once `after` is done. Called for every segment, also empty ranges, in program order.
  virtual void gradient_ready(Range range, TensorView gradient, const After& after) = 0;
  virtual void finish_step(int64_t t) = 0;
  // Brings what is in flight across steps to rest (before evaluation, checkpoint and end).
  virtual void quiesce() {}
  // What was averaged at step t, for the log: "x", "xu", "xuv" or "".
  virtual std::string synced(int64_t t) const = 0;
};

}  // namespace nsp
