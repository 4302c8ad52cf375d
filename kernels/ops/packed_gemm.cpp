#include "ops/packed_gemm.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <type_traits>
#include <vector>

#include "cpu/executor.hpp"
#include "ops/gemm_kernel.hpp"
#include "ops/gemm_panels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu {

namespace {

// Sums run over this many steps in registers, then they are added to C: a panel of B stays within half of a level-2 cache.
constexpr int64_t kSliceSteps = 384;
// Packed for all threads at a time: what a last-level cache holds beside the rest. But never fewer units than one tile has.
constexpr int64_t kSharedFloats = int64_t{2} << 20;
constexpr int64_t kPackUnits = 96;

// Units of the tiles: whole panels of rows and of columns.
struct Tile {
  int64_t own, shared;
};
constexpr Tile kTiles[] = {{96, 480}, {96, 240}, {96, 144}, {96, 96}, {48, 96}, {48, 48}};
static_assert(48 % kPanelRows == 0 && 48 % kPanelColumns == 0);
constexpr int64_t kTilesPerThread = 4;  // that a late one costs little

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Waits for other workers, which do not wait for this one.
template <class F>
void wait_until(const F& done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins > 1000) sched_yield();
  }
}

// The factor with fewer units (rows of A or columns of B) is the shared one. It is packed once, by all, for all, in phases:
// a block of its units, a range of k. After that come the tiles of the phase: some units of the other factor, packed by
// who multiplies them, times part of the block. Tasks are taken in this order, so whoever waits for earlier ones waits for
// workers that have them in hand already.
template <class In, class Out, Lane L>
class PackedGemm {
 public:
  PackedGemm(Context& context, const Gemm& g, const In* a, const In* b, const In* bias, Out* c)
      : g_(g),
        a_(g.transpose_a ? Factor<In>{a, 1, g.lda} : Factor<In>{a, g.lda, 1}),
        b_(g.transpose_b ? Factor<In>{b, g.ldb, 1} : Factor<In>{b, 1, g.ldb}),
        bias_(bias),
        c_(c),
        shares_rows_(g.m <= g.n),
        shared_(shares_rows_ ? g.m : g.n),
        own_(shares_rows_ ? g.n : g.m),
        steps_(steps_of(g.k, L)),
        slices_(ceil_div(steps_, kSliceSteps)),
        block_(std::min(ceil_div(shared_, 48) * 48, std::max(kTiles[0].shared, kSharedFloats / steps_ / 48 * 48))),
        blocks_(ceil_div(shared_, block_)),
        range_(block_ * steps_ <= kSharedFloats ? slices_ : kSharedFloats / (block_ * kSliceSteps)),
        ranges_(ceil_div(slices_, range_)),
        tile_(choose_tile(context.threads)),
        tiles_done_(static_cast<std::size_t>(blocks_ * ranges_)),
        packs_done_(static_cast<std::size_t>(blocks_ * ranges_)) {
    const bool alone = g.m * g.n * g.k < kAlone;
    workers_ =
        alone ? 1 : std::min<int64_t>(context.threads, ceil_div(own_, tile_.own) * ceil_div(std::min(shared_, block_), tile_.shared));
    packed_ = context.scratch.floats(static_cast<std::size_t>(block_ * std::min(steps_, range_ * kSliceSteps)));
    // Panels, biases and sums of a tile: whole cache lines each, since sides are multiples of 48.
    const bool sums_of_tile = kGathers && ranges_ == 1;
    per_worker_ =
        tile_.own * std::min(steps_, kSliceSteps) + std::max(tile_.own, tile_.shared) + (sums_of_tile ? tile_.own * tile_.shared : 0);
    work_ = context.scratch.floats(static_cast<std::size_t>(workers_ * per_worker_));
    if (kGathers && !sums_of_tile) sums_ = context.scratch.floats(static_cast<std::size_t>(g.m * g.n));
  }

  void run() {
    parallel_workers("nsp matmul", workers_, [this](int64_t worker) { work(work_ + worker * per_worker_); });
  }

 private:
  static constexpr bool kGathers = !std::is_same_v<Out, float>;  // sums elsewhere than in C
  static constexpr int64_t kAlone = int64_t{1} << 18;            // multiply-adds for which waking a thread costs as much

  Tile choose_tile(int threads) const {
    const Tile* tile = std::begin(kTiles);
    while (std::next(tile) != std::end(kTiles) &&
           ceil_div(own_, tile->own) * ceil_div(std::min(shared_, block_), tile->shared) < kTilesPerThread * threads)
      ++tile;
    return *tile;
  }

  struct Phase {
    int64_t unit, units;          // of the block
    int64_t first_slice, slices;  // of the range
    int64_t packs, parts, tiles;  // tasks; parts of the block in its tiles
  };
  Phase phase(int64_t index) const {
    Phase p{};
    p.unit = index / ranges_ * block_;
    p.units = std::min(block_, shared_ - p.unit);
    p.first_slice = index % ranges_ * range_;
    p.slices = std::min(range_, slices_ - p.first_slice);
    p.packs = ceil_div(p.units, kPackUnits) * p.slices;
    p.parts = ceil_div(p.units, tile_.shared);
    p.tiles = p.parts * ceil_div(own_, tile_.own);
    return p;
  }
  static constexpr int64_t kPerStep = L == Lane::pair ? 2 : 1;
  int64_t slice_k(int64_t slice) const { return std::min(kSliceSteps * kPerStep, g_.k - slice * kSliceSteps * kPerStep); }
  // Where the panels of a slice begin.
  float* packed(const Phase& p, int64_t slice) const { return packed_ + (slice - p.first_slice) * kSliceSteps * block_; }

  void work(float* scratch) {
    std::size_t index = 0;
    int64_t first = 0, tiles_before = 0;  // first task of this phase; tiles of the one before
    Phase here = phase(0);
    for (;;) {
      int64_t task = next_.fetch_add(1, std::memory_order_relaxed) - first;
      while (task >= here.packs + here.tiles) {
        task -= here.packs + here.tiles;
        first += here.packs + here.tiles;
        tiles_before = here.tiles;
        if (++index == packs_done_.size()) return;
        here = phase(static_cast<int64_t>(index));
      }
      if (task < here.packs) {
        if (index > 0) wait_until([&] { return tiles_done_[index - 1].load(std::memory_order_acquire) == tiles_before; });
        pack_shared(here, task);
        packs_done_[index].fetch_add(1, std::memory_order_release);
      } else {
        wait_until([&] { return packs_done_[index].load(std::memory_order_acquire) == here.packs; });
        multiply(here, task - here.packs, scratch);
        tiles_done_[index].fetch_add(1, std::memory_order_release);
      }
    }
  }

  template <int P>
  void pack_units(const Factor<In>& f, int64_t unit, int64_t units, int64_t slice, float* to) const {
    const int64_t k = slice * kSliceSteps * kPerStep;
    pack<L, P>(Factor<In>{f.at(unit, k), f.unit_stride, f.k_stride}, units, slice_k(slice), to);
  }
  void pack_rows(int64_t row, int64_t rows, int64_t slice, float* to) const { pack_units<kPanelRows>(a_, row, rows, slice, to); }
  void pack_columns(int64_t column, int64_t columns, int64_t slice, float* to) const {
    pack_units<kPanelColumns>(b_, column, columns, slice, to);
  }

  void pack_shared(const Phase& p, int64_t task) const {
    const int64_t slice = p.first_slice + task % p.slices, unit = task / p.slices * kPackUnits;
    const int64_t units = std::min(kPackUnits, p.units - unit);
    float* to = packed(p, slice) + unit * steps_of(slice_k(slice), L);
    if (shares_rows_) {
      pack_rows(p.unit + unit, units, slice, to);
    } else {
      pack_columns(p.unit + unit, units, slice, to);
    }
  }

  void multiply(const Phase& p, int64_t task, float* scratch) const {
    const int64_t part = task % p.parts * tile_.shared, own = task / p.parts * tile_.own;
    const int64_t parts = std::min(tile_.shared, p.units - part), owns = std::min(tile_.own, own_ - own);
    const int64_t row = shares_rows_ ? p.unit + part : own, column = shares_rows_ ? own : p.unit + part;
    const int64_t rows = shares_rows_ ? parts : owns, columns = shares_rows_ ? owns : parts;
    const bool first = p.first_slice == 0, last = p.first_slice + p.slices == slices_;

    float* own_panels = scratch;
    float* bias = own_panels + tile_.own * std::min(steps_, kSliceSteps);
    Out* c = c_ + row * g_.ldc + column;
    kernel_detail::Target to{bias + std::max(tile_.own, tile_.shared), columns, nullptr, !first || g_.beta != 0.0f};
    if constexpr (!kGathers) {
      to.c = c;
      to.stride = g_.ldc;
    } else {
      if (sums_ != nullptr) {
        to.c = sums_ + row * g_.n + column;
        to.stride = g_.n;
      }
    }
    if (first && bias_ != nullptr) {
      for (int64_t j = 0; j < columns; ++j) bias[j] = widen(bias_[column + j]);
      to.bias = bias;
    }
    for (int64_t slice = p.first_slice; slice < p.first_slice + p.slices; ++slice) {
      const int64_t steps = steps_of(slice_k(slice), L);
      const float* shared_panels = packed(p, slice) + part * steps;
      if (shares_rows_) {
        pack_columns(column, columns, slice, own_panels);
        multiply_panels<L>(rows, columns, steps, shared_panels, own_panels, to);
      } else {
        pack_rows(row, rows, slice, own_panels);
        multiply_panels<L>(rows, columns, steps, own_panels, shared_panels, to);
      }
      to.add = true;
      to.bias = nullptr;
    }
    if constexpr (kGathers) {
      if (!last) return;
      for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) c[i * g_.ldc + j] = narrow<Out>(to.c[i * to.stride + j]);
      }
    }
  }

  Gemm g_;
  Factor<In> a_, b_;
  const In* bias_;
  Out* c_;
  bool shares_rows_;
  int64_t shared_, own_;  // rows or columns
  int64_t steps_, slices_;
  int64_t block_, blocks_;  // units of the shared factor in one, and how many
  int64_t range_, ranges_;  // slices of k in one, and how many
  Tile tile_;
  int64_t workers_ = 1, per_worker_ = 0;
  float *packed_ = nullptr, *work_ = nullptr;
  float* sums_ = nullptr;  // of all of C, where they outlive a phase and C is bf16
  std::atomic<int64_t> next_{0};
  std::vector<std::atomic<int64_t>> tiles_done_, packs_done_;  // of each phase
};

}  // namespace

bool packed_gemm_has_bf16() {
  return kMultipliesPairs;
}

template <class In, class Out>
void packed_gemm(Context& context, const Gemm& gemm, const In* a, const In* b, const In* bias, Out* c) {
  constexpr Lane kLane = kMultipliesPairs && std::is_same_v<In, Bf16> ? Lane::pair : Lane::single;
  PackedGemm<In, Out, kLane>(context, gemm, a, b, bias, c).run();
}

template void packed_gemm(Context&, const Gemm&, const float*, const float*, const float*, float*);
template void packed_gemm(Context&, const Gemm&, const Bf16*, const Bf16*, const Bf16*, float*);
template void packed_gemm(Context&, const Gemm&, const Bf16*, const Bf16*, const Bf16*, Bf16*);

}  // namespace nsp::cpu
