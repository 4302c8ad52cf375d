// Which library computes a product, and in which tiles. Everything here is a function of the shape and of the processor,
// never of the number of threads or of a timing, so that equal runs give equal bits.
//
// Measured per core, one thread a tile, fp32, GFLOP/s (oneDNN 2.6.3 / OpenBLAS 0.3.21):
//   AVX2 (Zen 3, peak 102): OpenBLAS is flat at 75-90 % of the peak; oneDNN has holes at transposed A (3072 x 768 x 256:
//     37 / 75) and at dX of wide layers (256 x 768 x 3072: 46 / 93), but wins where a side is short, for it packs less
//     (1 x 768 x 768: 26 / 5; 16 x 768 x 768: 68 / 57; K = 64: 90 / 71; N = 64: 90 / 80).
//   AVX-512 (Zen 5, peak 224): equal (188-208 / 194-204), except that OpenBLAS falls to 105 under OPENBLAS_CORETYPE=Haswell,
//     which machine set-ups export, and that a BLAS which does not know the processor falls to 25; oneDNN does neither.
//   Everywhere the call itself decides below some 40^3 operations (16^3: 3 / 8).
// bf16 (Zen 5, peak 415): oneDNN 379-414 and two thirds of the traffic. OpenBLAS has no such product, and oneDNN without the
// instructions is useless, so there the factors are widened and OpenBLAS multiplies fp32 (AVX2: at the fp32 speed).
#include <algorithm>
#include <iterator>
#include <limits>

#include "ops/gemm.hpp"

namespace nsp::cpu {

namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

// The first row that fits decides.
struct Row {
  InstructionSet set;
  int64_t work_below;     // m n k
  int64_t short_side_to;  // the shortest of m, n, k
  GemmLibrary library;
};
constexpr Row kTable[] = {
    {InstructionSet::avx512, 65536, kAny, GemmLibrary::cblas}, {InstructionSet::avx512, kAny, kAny, GemmLibrary::onednn},
    {InstructionSet::avx2, 65536, kAny, GemmLibrary::cblas},   {InstructionSet::avx2, kAny, 64, GemmLibrary::onednn},
    {InstructionSet::avx2, kAny, kAny, GemmLibrary::cblas},    {InstructionSet::sse, kAny, kAny, GemmLibrary::cblas},
};

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
  if (!OnednnKernels::available() || (whole.bf16_factors && !OnednnKernels::has_bf16())) return GemmLibrary::cblas;
  const int64_t work = whole.m * whole.n * whole.k, side = std::min({whole.m, whole.n, whole.k});
  const Row* row = std::find_if(std::begin(kTable), std::end(kTable),
                                [&](const Row& r) { return r.set == set && work < r.work_below && side <= r.short_side_to; });
  return row == std::end(kTable) ? GemmLibrary::cblas : row->library;
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
