// The sum of all reductions: ((x0 + x1) + x2) + ... in rank order, in the dtype, whatever the timing was.
#pragma once

#include <cstdint>

#include "nsp/types.hpp"

namespace nsp {

// True for the dtypes that can be summed: fp32, fp64, int32, int64 (integers wrap around).
bool summable(DType dtype) noexcept;

// out[i] = the sum of x[0][i] ... x[ranks-1][i], n elements. out may be one of the x. REQUIRES summable(dtype), ranks >= 2.
void sum_ranks(DType dtype, const void* const* x, int ranks, void* out, int64_t n);

}  // namespace nsp
