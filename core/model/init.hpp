// Initial weights, from host code: the same bits on every rank, device and cut.
//
// A value is a function of (seed, tensor name, element index) alone: Philox4x32-10 with the seed as key and the index and a
// hash of the name as counter, then Box-Muller in double, rounded once.
#pragma once

#include <cstdint>

#include "core/tensor/param_table.hpp"

namespace nsp {

// GPT-2's scheme: normal with deviation 0.02, and the two matrices of a block that write into the residual stream scaled by
// 1/sqrt(number of such matrices). Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.3.
inline constexpr double init_std = 0.02;
double residual_init_std(int64_t layers) noexcept;

// Elements [offset, offset + count) of the tensor into out. Any piece can be asked for independently.
// REQUIRES 0 <= offset, offset + count <= param.elements().
void initial_values(const Param& param, uint64_t seed, int64_t offset, int64_t count, float* out);

}  // namespace nsp
