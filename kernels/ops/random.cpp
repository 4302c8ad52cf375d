// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC11). Element offset + i is word (offset + i) % 4 of counter block (offset + i) / 4.
#include <cmath>

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu::kernels {

namespace {

struct Words {
  uint32_t w[4];
};

Words philox(uint64_t block, uint64_t stream, uint64_t seed) {
  Words c = {{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
              static_cast<uint32_t>(stream >> 32)}};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.w[0], p1 = uint64_t{0xCD9E8D57u} * c.w[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.w[1] ^ key0, static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c.w[3] ^ key1,
          static_cast<uint32_t>(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

float uniform(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// The four values of a block. Box-Muller: words 0 and 1 give values 0 (cosine) and 1 (sine), words 2 and 3 the others.
// The radius takes its uniform number from (0,1], so that its logarithm is finite.
void block_values(float values[4], const Words& words, bool normal) {
  for (int pair = 0; pair < 4; pair += 2) {
    if (normal) {
      const float u = static_cast<float>((words.w[pair] >> 8) + 1u) * 0x1p-24f;
      const float radius = std::sqrt(-2.0f * std::log(u)), angle = 6.2831853071795865f * uniform(words.w[pair + 1]);
      values[pair] = radius * std::cos(angle);
      values[pair + 1] = radius * std::sin(angle);
    } else {
      values[pair] = uniform(words.w[pair]);
      values[pair + 1] = uniform(words.w[pair + 1]);
    }
  }
}

template <class T>
void fill(const nsp_random_fill_args& args) {
  const nsp_random_fill_args a = args;
  T* x = static_cast<T*>(a.x.data);
  const uint64_t n = static_cast<uint64_t>(a.x.size[0]);
  if (n == 0) return;
  const uint64_t first = a.offset / 4, last = (a.offset + n - 1) / 4;
  constexpr int64_t kBlocks = 1024;
  parallel_blocks("nsp random", static_cast<int64_t>(last - first + 1), kBlocks, [=](int64_t lo, int64_t hi, int64_t) {
    for (int64_t b = lo; b < hi; ++b) {
      float values[4];
      const uint64_t block = first + static_cast<uint64_t>(b);
      block_values(values, philox(block, a.stream, a.seed), a.distribution == 1);
      for (uint64_t k = 0; k < 4; ++k) {
        const uint64_t element = 4 * block + k;
        if (element >= a.offset && element < a.offset + n) x[element - a.offset] = narrow<T>(a.low + a.scale * values[k]);
      }
    }
  });
}

}  // namespace

void random_fill(Context&, const nsp_random_fill_args& a) {
  with_element(a.x.dtype, [&](auto element) { fill<decltype(element)>(a); });
}

}  // namespace nsp::cpu::kernels
