// A product of bf16 factors on a processor that cannot multiply them: slices of k are widened into working memory and
// multiplied there in fp32, so each result is rounded once. One tile on one thread, as ops/gemm.hpp wants it.
#pragma once

#include <cstdint>

#include "ops/element.hpp"
#include "ops/gemm.hpp"

namespace nsp::cpu {

// Working memory of one tile in floats. Bounded: a slice has at most 256 columns of k.
int64_t widened_gemm_floats(const Gemm& tile);
void widened_gemm(const Gemm& tile, const Bf16* a, const Bf16* b, float* c, float* work);
void widened_gemm(const Gemm& tile, const Bf16* a, const Bf16* b, Bf16* c, float* work);

}  // namespace nsp::cpu
