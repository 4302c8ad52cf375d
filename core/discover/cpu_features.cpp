#include "core/discover/cpu_features.hpp"

#include "nsp/abi.h"

namespace nsp {

uint64_t cpu_features() noexcept {
  uint64_t bits = 0;
#if defined(__x86_64__)
  // Spelled out by instruction sets, since not every compiler knows the level names here. Each asks the operating system too.
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (v2) bits |= NSP_CPU_X86_64_V2;
  if (v3) bits |= NSP_CPU_X86_64_V3;
  if (v4) bits |= NSP_CPU_X86_64_V4;
  if (v4 && __builtin_cpu_supports("avx512bf16")) bits |= NSP_CPU_AVX512_BF16;
  if (v4 && __builtin_cpu_supports("avx512vnni")) bits |= NSP_CPU_AVX512_VNNI;
#endif
  return bits;
}

std::string cpu_feature_text(uint64_t bits) {
  std::string text;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t value = uint64_t{1} << bit;
    if ((bits & value) == 0) continue;
    if (!text.empty()) text += ", ";
    switch (value) {
      case NSP_CPU_X86_64_V2:
        text += "SSE4.2 (x86-64-v2)";
        break;
      case NSP_CPU_X86_64_V3:
        text += "AVX2 (x86-64-v3)";
        break;
      case NSP_CPU_X86_64_V4:
        text += "AVX-512 (x86-64-v4)";
        break;
      case NSP_CPU_AVX512_BF16:
        text += "AVX-512 BF16";
        break;
      case NSP_CPU_AVX512_VNNI:
        text += "AVX-512 VNNI";
        break;
      default:
        text += "feature bit " + std::to_string(bit) + ", which this nsp does not know";
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace nsp
