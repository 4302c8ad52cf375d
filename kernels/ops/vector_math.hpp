// exp and the logistic function without branches or calls, so that the compiler vectorises the loops they stand in.
#pragma once

#include <bit>
#include <cstdint>

namespace nsp::cpu {

// exp(x) to 1.5e-7 relative for x <= 88; 0 below -87 (where the result would leave the normal numbers); NaN stays NaN.
// Cody and Waite's reduction x = n ln2 + r and the polynomial of Cephes' expf (Moshier, netlib.org/cephes).
inline float fast_exp(float x) {
  constexpr float kLowest = -87.0f, kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
  const float clamped = x < kLowest ? kLowest : x;
  const float shifted = clamped * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = p * (r * r) + r + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
  const float result = mantissa * power;
  return x < kLowest ? 0.0f : result;
}

// value = 1 / (1 + exp(-z)) and slope = value (1 - value), both without cancellation at either end.
struct Logistic {
  float value, slope;
};
inline Logistic logistic(float z) {
  const float e = fast_exp(z < 0.0f ? z : -z);
  const float inverse = 1.0f / (1.0f + e);
  const float value = (z < 0.0f ? e : 1.0f) * inverse;
  return {value, e * inverse * inverse};
}

}  // namespace nsp::cpu
