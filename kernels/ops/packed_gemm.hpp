// Products by our own code: one factor is packed once for all threads, the other tile by tile, and tiles are multiplied in
// registers. The bits of a result depend on k and on the instruction set, not on tiles or threads.
#pragma once

#include "ops/element.hpp"
#include "ops/gemm.hpp"

namespace nsp::cpu {

struct Context;

// Whether this module was compiled to multiply bf16 with the instruction for pairs; else it widens them.
bool packed_gemm_has_bf16();

// C (+)= op(A) op(B) + bias (of the columns, or null), k > 0; a bf16 C is only written. Executor thread. Throws std::bad_alloc.
template <class In, class Out>
void packed_gemm(Context& context, const Gemm& gemm, const In* a, const In* b, const In* bias, Out* c);

}  // namespace nsp::cpu
