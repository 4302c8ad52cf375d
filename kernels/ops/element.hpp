// The element types of tensors, and the way between them and fp32, in which everything is computed.
#pragma once

#include <bit>
#include <cstdint>

#include "nsp/backend.h"

namespace nsp::cpu {

// The upper half of an fp32. An enumeration: a type of its own that is still a plain number to the vectoriser.
enum class Bf16 : uint16_t {};

inline float widen(float x) {
  return x;
}
inline float widen(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

// To nearest, ties to even. Integers only: the instruction for it (AVX512_BF16) flushes denormals, so its bits are others.
template <class T>
T narrow(float x);
template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline Bf16 narrow<Bf16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;  // a NaN must not round to infinity
  return static_cast<Bf16>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// f(T{}) for the element type T of a floating dtype that the checks have let through.
template <class F>
void with_element(int32_t dtype, const F& f) {
  if (dtype == NSP_BF16) {
    f(Bf16{});
  } else {
    f(0.0f);
  }
}

}  // namespace nsp::cpu
