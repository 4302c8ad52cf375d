// What a part of the model is: it declares parameters, plans its activations, and computes forward and backward by hand.
//
// Letters: B micro-batch, T tokens of a whole sequence, Tl this rank's tokens of each sequence (= T without a sequence axis),
// N = B * Tl, C hidden, H query heads, G key/value heads, Hl and Gl those this rank attends with, D head size, F ffn,
// V vocabulary.
#pragma once

#include <cstdint>
#include <functional>

#include "core/tensor/activations.hpp"
#include "core/tensor/param_table.hpp"
#include "nsp/device.hpp"
#include "nsp/parallel_strategy.hpp"

namespace nsp {

// Sizes of a micro-step on this rank; the planned ones are maxima of B.
struct BatchShape {
  int64_t micro_batch = 0;     // B
  int64_t local_tokens = 0;    // Tl
  int64_t tokens = 0;          // T
  int64_t first_token = 0;     // position of the first local token in its sequence
  int64_t local_heads = 0;     // Hl
  int64_t local_kv_heads = 0;  // Gl, Hl / Gl query heads each
  bool splits_heads = false;   // attention runs on head shards
  DType dtype = DType::f32;    // of activations, and of the weights that they meet
  int64_t rows() const noexcept { return micro_batch * local_tokens; }
};

// One micro-batch on the device.
struct MicroBatch {
  TensorView tokens;          // [N] i32, row b * Tl + i
  TensorView targets;         // [N] i32, < 0: not counted
  TensorView positions;       // [N] i32, position in the sequence
  TensorView document_start;  // [B,T] i32 of the whole sequences, or absent: attention sees across documents
};

// Weights and gradient sums of a segment on the device, as the store hands them out.
class ParamAccess {
 public:
  virtual ~ParamAccess() = default;
  virtual void prefetch(int segment) = 0;
  virtual TensorView weights(int segment) = 0;                    // acquires; 1-D storage, padding included
  virtual TensorView gradients(int segment) = 0;                  // acquires the gradient sums; same layout
  virtual void release(int segment, bool gradients_written) = 0;  // ends weights(), and gradients() if it was called (then true)
};

class KvCache;

// What every forward and backward call is given.
struct ModelContext {
  const Ops& ops;
  Workspace& workspace;
  ParallelStrategy& strategy;
  HostWait& wait;    // progress() is called between modules
  BatchShape shape;  // of this micro-step
  MicroBatch batch;
  bool train = true;  // false: forward only, nothing is kept for backward
  // Set: the batch continues the sequence of the cache, whose keys and values attention sees too, and adds its own. REQUIRES one
  // sequence on one rank, positions from the cache's length on, no document starts, no train.
  KvCache* cache = nullptr;
};

// A parameter's view inside a segment's storage, in its stored shape (padded rows included if asked).
inline TensorView param_view(const ParamTable& table, int index, TensorView segment_storage, bool padded = false) {
  const Param& p = table.param(index);
  char* base = static_cast<char*>(segment_storage.data()) + p.offset * static_cast<int64_t>(size_of(segment_storage.dtype()));
  const int64_t rows = padded && p.padded_rows > 0 ? p.padded_rows : p.shape[0];
  return p.shape.size() == 1 ? TensorView(base, segment_storage.dtype(), {rows})
                             : TensorView(base, segment_storage.dtype(), {rows, p.shape[1]});
}

// The storage of one segment while it is acquired. gradients is absent in forward, but for the head's.
struct SegmentViews {
  const ParamTable& table;
  TensorView weights, gradients;
  TensorView weight(int param, bool padded = false) const { return param_view(table, param, weights, padded); }
  TensorView gradient(int param, bool padded = false) const { return param_view(table, param, gradients, padded); }
};

// A scratch tensor of the dry plan, the twin of Workspace::Scratch: a module's plan_forward and plan_backward nest these as its
// forward and backward nest the real ones.
class PlannedScratch {
 public:
  PlannedScratch(ActivationPlanner& planner, const char* name, DType dtype, int64_t elements) : planner_(planner) {
    planner.begin_scratch(name, dtype, elements);
  }
  ~PlannedScratch() { planner_.end_scratch(); }
  PlannedScratch(const PlannedScratch&) = delete;
  PlannedScratch& operator=(const PlannedScratch&) = delete;

 private:
  ActivationPlanner& planner_;
};

}  // namespace nsp
