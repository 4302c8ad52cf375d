#include <algorithm>

#include "ops/gemm.hpp"

namespace nsp::cpu {

InstructionSet instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
#endif
  return InstructionSet::sse;
}

GemmLibrary choose_library(const Gemm& whole, InstructionSet set, bool have_onednn) {
  if (!have_onednn || set != InstructionSet::avx512) return GemmLibrary::cblas;
  return whole.m * whole.n * whole.k < 64 * 64 * 64 ? GemmLibrary::cblas : GemmLibrary::onednn;
}

Tile choose_tile(const Gemm& whole, InstructionSet) { return {std::min<int64_t>(whole.m, 256), std::min<int64_t>(whole.n, 256)}; }

}  // namespace nsp::cpu
