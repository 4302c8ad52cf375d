// The states that core itself declares; the ids of the first two are fixed.
//
// Forward and backward read `weights`. The optimizer and the sync policy work on the *master*: the owned ranges of the fp32
// weights. In fp32 they are the same storage. In bf16 the master is a state of its own, and after every change core casts it to
// the owned part of `weights` and gathers that (core/train/parts.hpp). Per rank, n parameters and S ranks in a replica:
// fp32 = weights 4n, gradient sums 4n; bf16 = weights 2n, gradient sums 4n, master 4n/S.
#pragma once

#include "nsp/memory.hpp"

namespace nsp {

inline constexpr StateId weights_state = 0;
inline constexpr StateId gradients_state = 1;

// The kind of the fp32 weights, whichever state holds them: checkpoints and sync policies know no other.
inline constexpr const char* weights_kind = "weights";

// What forward and backward read. f32: also the master. Else a copy of it, which no checkpoint needs.
inline StateDecl weights_decl(DType dtype) {
  StateDecl decl;
  decl.kind = dtype == DType::f32 ? std::string(weights_kind) : std::string(weights_kind).append(".").append(name_of(dtype));
  decl.dtype = dtype;
  decl.extent = Extent::full;
  decl.merge = Merge::weighted_mean;
  decl.checkpointed = dtype == DType::f32;
  return decl;
}

// The fp32 weights where forward and backward read another dtype.
inline StateDecl master_decl() {
  StateDecl decl;
  decl.kind = weights_kind;
  decl.extent = Extent::owned;
  decl.merge = Merge::weighted_mean;
  return decl;
}

// Sums over tokens, not means. fp32 whatever the weights are: a sum over many tokens outgrows the 8 bits of a bf16 mantissa.
inline StateDecl gradients_decl() {
  StateDecl decl;
  decl.kind = "gradients";
  decl.extent = Extent::full;
  decl.merge = Merge::reset;
  decl.checkpointed = false;
  return decl;
}

}  // namespace nsp
