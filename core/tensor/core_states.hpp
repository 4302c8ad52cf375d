// The two states that core itself declares; their ids come first.
#pragma once

#include "nsp/memory.hpp"

namespace nsp {

inline constexpr StateId weights_state = 0;
inline constexpr StateId gradients_state = 1;

inline StateDecl weights_decl() {
  StateDecl decl;
  decl.kind = "weights";
  decl.extent = Extent::full;
  decl.merge = Merge::weighted_mean;
  return decl;
}

// Sums over tokens, not means.
inline StateDecl gradients_decl() {
  StateDecl decl;
  decl.kind = "gradients";
  decl.extent = Extent::full;
  decl.merge = Merge::reset;
  decl.checkpointed = false;
  return decl;
}

}  // namespace nsp
