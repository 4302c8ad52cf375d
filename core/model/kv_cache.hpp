// Keys and values of the tokens so far, of all layers: what lets generation compute one token a step.
//
// Holds one sequence. A pass over n new tokens appends to each layer once and then counts with advance(n). Keys are stored as
// attention reads them, turned by their positions where the family has rope. The memory is allocated once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/spec.hpp"
#include "nsp/device.hpp"

namespace nsp {

class KvCache {
 public:
  // context: tokens that it can hold. REQUIRES a completed spec.
  KvCache(Device& device, const ModelSpec& spec, int64_t context, DType dtype);
  static int64_t bytes(const ModelSpec& spec, int64_t context, DType dtype);

  // Enqueues the copy of k and v [1,n,G,D] behind the tokens that are held; gives keys and values of all, [1,length+n,G,D].
  std::pair<TensorView, TensorView> append(const Ops& ops, int64_t layer, TensorView k, TensorView v) const;
  int64_t length() const noexcept { return length_; }  // tokens held by every layer
  void advance(int64_t tokens);
  void clear() noexcept { length_ = 0; }

 private:
  TensorView rows(int64_t layer, int part, int64_t lo, int64_t hi) const;  // part 0: keys, 1: values
  int64_t context_, kv_heads_, head_dim_;
  DType dtype_;
  Buffer memory_;  // [layers, 2, context, G, D]
  int64_t length_ = 0;
};

}  // namespace nsp
