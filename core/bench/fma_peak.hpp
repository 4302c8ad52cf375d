// The arithmetic peak of the host's cores: fused multiply-adds on registers alone.
#pragma once

#include "nsp/device.hpp"

namespace nsp::bench {

// GFLOP/s (a multiply-add is 2) of `threads` threads together, each busy with independent multiply-adds of the widest vectors that
// this processor has: fp32 (AVX-512, AVX2 with FMA, or a product and a sum of 4 lanes), and bf16 pairs summed in fp32
// (VDPBF16PS of avx512_bf16). 0 for bf16 where the processor has no such instruction. Matrix units (AMX) are not used. The best of
// several samples over `seconds`, at least 3. REQUIRES threads > 0.
double host_fma_peak(int threads, DType dtype, double seconds);

}  // namespace nsp::bench
