#include "core/model/init.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/model/philox.hpp"

namespace nsp {
namespace {

// FNV-1a, 64 bit: stable over compilers and machines, which std::hash is not.
uint64_t hash_of(const std::string& name) noexcept {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

// Box and Muller (1958): two normals from two words.
void normal_pair(uint32_t a, uint32_t b, double* out) noexcept {
  constexpr double unit = 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log((a + 1.0) * unit));  // in (0,1], so that the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (b * unit);
  out[0] = radius * std::cos(angle);
  out[1] = radius * std::sin(angle);
}

void normal_values(const Param& param, uint64_t seed, int64_t offset, int64_t count, float* out) {
  const uint64_t name = hash_of(param.name);
  for (int64_t i = offset; i < offset + count;) {
    const auto words = philox(seed, static_cast<uint64_t>(i / 4), name);
    double values[4];
    normal_pair(words[0], words[1], values);
    normal_pair(words[2], words[3], values + 2);
    for (const int64_t end = std::min(offset + count, i / 4 * 4 + 4); i < end; ++i)
      *out++ = static_cast<float>(param.init.std * values[i % 4]);
  }
}

}  // namespace

double residual_init_std(int64_t layers) noexcept {
  return init_std / std::sqrt(2.0 * static_cast<double>(layers));
}

void initial_values(const Param& param, uint64_t seed, int64_t offset, int64_t count, float* out) {
  NSP_REQUIRE(offset >= 0 && count >= 0 && offset + count <= param.elements(), "a piece lies inside its tensor: " + param.name);
  switch (param.init.kind) {
    case InitKind::zeros:
      std::fill_n(out, count, 0.0f);
      break;
    case InitKind::ones:
      std::fill_n(out, count, 1.0f);
      break;
    case InitKind::normal:
      normal_values(param, seed, offset, count, out);
      break;
  }
}

}  // namespace nsp
