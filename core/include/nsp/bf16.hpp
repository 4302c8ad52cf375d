// bfloat16 on the host: the upper half of an fp32. Google, "BFloat16: The secret to high performance on Cloud TPUs" (2019).
// The bits are those of the backends' cast op (nsp/backend.h).
#pragma once

#include <bit>
#include <cstdint>

namespace nsp {

inline float from_bf16(uint16_t x) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

// To the nearest, ties to even. A NaN stays a (quiet) NaN; rounding could make infinity of it.
inline uint16_t to_bf16(float x) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace nsp
