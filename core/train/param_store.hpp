// The one place that hands out weights and gradients to the model: arenas behind the LocCache.
#pragma once

#include "core/model/module.hpp"
#include "core/tensor/core_states.hpp"
#include "core/tensor/state_arena.hpp"
#include "nsp/memory.hpp"

namespace nsp {

class ParamStore : public ParamAccess {
 public:
  ParamStore(const ParamTable& table, StateArena& arena, LocCache& cache, Stream& stream)
      : table_(table), arena_(arena), cache_(cache), stream_(stream) {}
  void prefetch(int segment) override { cache_.prefetch(weights_state, table_.whole(segment)); }
  TensorView weights(int segment) override;
  TensorView gradients(int segment) override;
  void release(int segment, bool gradients_written) override;

 private:
  const ParamTable& table_;
  StateArena& arena_;
  LocCache& cache_;
  Stream& stream_;
};

}  // namespace nsp
