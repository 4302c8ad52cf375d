// The reference data of tests/golden/llama_tiny, under nsp's tensor names.
#pragma once

#include <vector>

#include "core/model/spec.hpp"
#include "tests/model/reference_layers.hpp"

namespace nsp::test {

struct LlamaTiny {
  static constexpr int64_t steps = 20, batch = 3, tokens = 48;
  ModelSpec spec;
  Params parameters, gradients, parameters_after;     // gradients: of the mean loss of batch 0, before clipping
  Values logits;                                      // of batch 0, [B,T,V]
  double loss = 0;                                    // of batch 0
  Values losses, grad_norms;                          // [steps]
  std::vector<std::vector<int32_t>> inputs, targets;  // [steps][B,T]
};

LlamaTiny read_llama_tiny();

}  // namespace nsp::test
