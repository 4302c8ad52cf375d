// What computes a product, and in which tiles a library does. Everything here is a function of the shape and of the
// processor, never of the number of threads or of a timing, so that equal runs give equal bits.
#include <algorithm>
#include <iterator>
#include <limits>

#include "ops/gemm.hpp"
#include "ops/packed_gemm.hpp"

namespace nsp::cpu {

namespace {

// Products with so few rows, columns or terms read their matrices once: packing would cost more than multiplying.
constexpr int64_t kThin = 7;

// Below this many multiply-adds a product is one tile: waking a thread costs as much.
constexpr int64_t kOneTile = int64_t{1} << 18;
constexpr int64_t kSides[] = {64, 96, 128, 192, 256, 384, 512, 768, 1024};

// Thread counts that the tiles should suit, by how common they are for one rank.
struct Threads {
  int64_t count;
  double weight;
};
constexpr Threads kThreads[] = {{1, 1.0}, {2, 3.0}, {4, 1.0}, {8, 0.5}, {16, 0.25}};

// Weighted time with such tiles relative to the perfect one. A tile of m x n packs both its factors anew, which was
// measured as 10 (1/m + 1/n) of its time; uneven shares of the tiles cost the rest.
double relative_time(const Gemm& whole, int64_t m, int64_t n) {
  const double packing = 1.0 + 10.0 / static_cast<double>(m) + 10.0 / static_cast<double>(n);
  const int64_t tiles = ((whole.m + m - 1) / m) * ((whole.n + n - 1) / n);
  const double share = static_cast<double>(m) * static_cast<double>(n) / (static_cast<double>(whole.m) * static_cast<double>(whole.n));
  double sum = 0.0;
  for (const Threads& threads : kThreads) {
    // One thread does all tiles, and a small one at the edge is a small cost; several wait for the slowest.
    const double tiles_each = threads.count == 1 ? 1.0 / share : static_cast<double>((tiles + threads.count - 1) / threads.count);
    sum += threads.weight * packing * tiles_each * share * static_cast<double>(threads.count);
  }
  return sum;
}

}  // namespace

InstructionSet instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
#endif
  return InstructionSet::sse;
}

GemmLibrary choose_library(const Gemm& whole, InstructionSet set) {
  if (whole.bf16_factors) {
    const bool onednn = OnednnKernels::has_bf16_tiles() || (OnednnKernels::has_bf16() && !packed_gemm_has_bf16());
    return onednn ? GemmLibrary::onednn : GemmLibrary::packed;
  }
  if (set == InstructionSet::sse) return GemmLibrary::cblas;
  const int64_t side = std::min({whole.m, whole.n, whole.k});
  return side <= kThin && OnednnKernels::available() ? GemmLibrary::onednn : GemmLibrary::packed;
}

Tile choose_tile(const Gemm& whole) {
  Tile best{whole.m, whole.n};
  if (whole.m * whole.n * whole.k < kOneTile) return best;
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t m : kSides) {
    for (const int64_t n : kSides) {
      const Tile tile{std::min(m, whole.m), std::min(n, whole.n)};
      const double time = relative_time(whole, tile.m, tile.n);
      if (time < least) {
        least = time;
        best = tile;
      }
    }
  }
  return best;
}

}  // namespace nsp::cpu
