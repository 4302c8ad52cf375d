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
  DType dtype = DType::f32;   // of the tensors that hooks exchange
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
  int64_t micro_batch = 0;   // largest B that hooks will see
  DType dtype = DType::f32;  // of the tensors that they will see
};

// The heads that a rank attends with: query heads [query_lo, query_hi), key/value heads [kv_lo, kv_hi). Every query head has its
// key/value head in the same share, and the share's query heads map to its key/value heads as in the whole: query_heads() is a
// multiple of kv_heads(), and query head i of the share reads key/value head i / (query_heads() / kv_heads()) of the share.
// Query heads have one rank each; a key/value head may have several (it is replicated).
struct HeadShare {
  int64_t query_lo = 0, query_hi = 0, kv_lo = 0, kv_hi = 0;
  int64_t query_heads() const noexcept { return query_hi - query_lo; }
  int64_t kv_heads() const noexcept { return kv_hi - kv_lo; }
  friend bool operator==(const HeadShare&, const HeadShare&) = default;
};

// One tensor that is exchanged: the same values as a shard of the sequence and as a shard of the heads. A tensor with as many heads
// as the model has query heads is cut like these, any other like the key/value heads.
struct HeadExchange {
  TensorView sequence;  // [B, Tl, H or G, D], this rank's tokens, all heads; any strides
  TensorView heads;     // [B, T, Hl or Gl, D], all tokens, this rank's heads; any strides
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
  // What the rank at this position attends with. Before open() too. REQUIRES heads to be a multiple of kv_heads.
  virtual HeadShare head_share(const ParallelPlan& plan, int position, int64_t heads, int64_t kv_heads) const = 0;
  // Site "attention in" forward, and "attention out" backward: sequence shards -> head shards, all parts in one exchange.
  virtual void sequence_to_heads(std::span<const HeadExchange> parts) = 0;
  // Site "attention out" forward, and "attention in" backward: head shards -> sequence shards. Of a head that several ranks hold
  // (gradients of replicated keys and values) the sum is formed, in rank order.
  virtual void heads_to_sequence(std::span<const HeadExchange> parts) = 0;
};

}  // namespace nsp
