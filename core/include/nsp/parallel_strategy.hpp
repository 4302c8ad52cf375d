// Parallelism inside one model replica (kind "parallel"). A strategy owns the named axes there (now: sequence; later shard,
// tensor, expert); replicate is the outermost axis, sequence the innermost in rank order.
//
// propose() runs in `nsp_app plan` too: no devices, no communication. After open() the hooks run at named sites of the model.
// Hooks enqueue ops on the stream and may wait through context.wait for their own collectives. Thread: main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"
#include "nsp/device.hpp"

namespace nsp {

// What a strategy may know of the job when it proposes.
struct ParallelQuestion {
  int ranks = 1;
  int64_t heads = 0, kv_heads = 0, head_dim = 0, context = 0;
  int64_t global_batch = 0;   // sequences a step over all replicas
  int64_t memory_budget = 0;  // bytes a rank may use; 0 = not known
  // Bytes that one rank needs at sequence degree d (micro-batch as planned).
  std::function<int64_t(int degree)> bytes_at_degree;
};

struct Axis {
  std::string name;  // "sequence"
  int degree = 1;
};

struct ParallelPlan {
  std::vector<Axis> axes;           // inside a replica, outermost first
  std::vector<int64_t> token_cuts;  // position i of the sequence axis holds tokens [token_cuts[i], token_cuts[i+1]) of each sequence
  std::string reason;               // "degree 2: 6 replicas would not divide ..."; printed
  int replica_size() const {
    int size = 1;
    for (const Axis& axis : axes) size *= axis.degree;
    return size;
  }
};

struct ParallelContext {
  ParallelPlan plan;
  int position = 0;       // of this rank in its replica
  Communicator& replica;  // over the ranks of this replica, in position order; device memory
  Stream& stream;
  HostWait& wait;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t micro_batch = 0;  // largest B that hooks will see
};

// One tensor that is exchanged: the same values as a shard of the sequence and as a shard of the heads.
struct HeadExchange {
  TensorView sequence;  // [B, Tl, H, D], this rank's tokens, all heads; any strides
  TensorView heads;     // [B, T, Hl, D], all tokens, this rank's heads; any strides
};

class ParallelStrategy {
 public:
  virtual ~ParallelStrategy() = default;
  // The plan, or Error(usage) whose text says why not and what to change.
  virtual ParallelPlan propose(const ParallelQuestion& question) = 0;
  virtual void open(const ParallelContext& context) = 0;
  // Device memory that hooks will use as staging, in bytes, for tensors of [B, T, heads, D] at this plan.
  virtual int64_t staging_bytes(const ParallelPlan& plan, const ParallelQuestion& question, int64_t micro_batch) const = 0;
  // True if attention runs on a shard of the heads; then the two hooks below are called around it.
  virtual bool splits_heads() const = 0;
  // Query heads [first, second) that this rank attends with; the same for key/value heads. Before open() too, by position.
  virtual std::pair<int64_t, int64_t> head_range(const ParallelPlan& plan, int position, int64_t heads) const = 0;
  // Site "attention in" forward, and "attention out" backward: sequence shards -> head shards, all parts in one exchange.
  virtual void sequence_to_heads(std::span<const HeadExchange> parts) = 0;
  // Site "attention out" forward, and "attention in" backward: head shards -> sequence shards.
  virtual void heads_to_sequence(std::span<const HeadExchange> parts) = 0;
};

}  // namespace nsp
