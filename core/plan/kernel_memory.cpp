#include "core/plan/kernel_memory.hpp"

#include <algorithm>

namespace nsp {
namespace {

constexpr int64_t float_bytes = 4, double_bytes = 8;
constexpr int64_t query_block = 48, key_block = 64;                  // kernels/ops/attention.hpp
constexpr int64_t most_row_blocks = 64, least_rows_of_a_block = 16;  // kernels/ops/column_sum.hpp
constexpr int64_t elements_of_a_sum = 16384;                         // kernels/ops/reduce.cpp
constexpr int64_t packed_slice = 384, packed_panels = 48, packed_own = 96, packed_part = 480,
                  packed_shared = int64_t{2} << 20;                                   // kernels/ops/packed_gemm.cpp
constexpr int64_t widest_tile = 1024, slice_of_k = 256, one_tile = int64_t{1} << 18;  // kernels/ops/matmul_table.cpp
// oneDNN 2.6 took at most 0.31 MiB of scratchpad more than 256 columns of both factors of a tile in fp32, over all instruction sets.
constexpr int64_t onednn_beyond = int64_t{1} << 19;
constexpr int64_t smallest_block = int64_t{1} << 20;  // kernels/cpu/scratch.cpp

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Workers take a task each and have this many floats of their own, rounded to whole cache lines.
int64_t of_workers(int64_t tasks, int threads, int64_t floats) {
  return float_bytes * std::min<int64_t>(tasks, threads) * (ceil_div(floats, 16) * 16);
}

int64_t attention_forward(const ModelSpec& spec, const BatchShape& s, int threads) {
  const int64_t size = spec.head_dim, widened = s.dtype == DType::f32 ? 0 : (query_block + key_block + s.tokens) * size;
  return of_workers(s.micro_batch * s.local_heads, threads, 2 * s.tokens + size * key_block + query_block * key_block + widened);
}

int64_t attention_backward(const ModelSpec& spec, const BatchShape& s, int threads) {
  if (s.local_kv_heads == 0) return 0;
  const int64_t size = spec.head_dim, rows = s.tokens * (s.local_heads / s.local_kv_heads);
  const int64_t widened = s.dtype == DType::f32 ? 0 : (2 * query_block + 3 * key_block + rows) * size;
  return of_workers(s.micro_batch * s.local_kv_heads, threads, rows + 2 * size * key_block + 2 * query_block * key_block + widened);
}

// Frequencies in double, and a table of cosines and sines for each position.
int64_t rope(const ModelSpec& spec, const BatchShape& s) {
  return spec.is_llama() ? double_bytes * (spec.head_dim / 2) + 2 * float_bytes * (spec.head_dim / 2) * s.local_tokens : 0;
}

// Gradients of norms (two vectors at once in LayerNorm) and of biases.
int64_t row_sums(const ModelSpec& spec, const BatchShape& s) {
  int64_t columns = spec.is_llama() ? spec.hidden : std::max(2 * spec.hidden, spec.ffn);
  if (spec.qkv_bias) columns = std::max(columns, spec.qkv_width());
  return float_bytes * std::min(most_row_blocks, ceil_div(s.rows(), least_rows_of_a_block)) * columns;
}

// Of our own code. What is packed for all threads, and each thread's panels, biases and sums of a tile; and the sums of all of a
// bf16 result, where k is so long that they outlive a phase.
int64_t packed_floats(int64_t m, int64_t n, int64_t k, bool bf16_result, int threads) {
  const int64_t shared = std::min(packed_shared, ceil_div(std::min(m, n), packed_panels) * packed_panels * k);
  const int64_t own = packed_own * std::min(k, packed_slice) + packed_part + (bf16_result ? packed_own * packed_part : 0);
  return shared + threads * own + (bf16_result && k > packed_shared / packed_part ? m * n : 0);
}

// Of oneDNN, about: 256 columns of both factors of an m x n tile, and its sums where the result is bf16.
int64_t tile_floats(int64_t m, int64_t n, int64_t k, bool bf16_result) {
  return (m + n) * std::min(slice_of_k, k) + (bf16_result ? m * n : 0);
}

// A product of up to these sizes; all of it grows with every one. In oneDNN those of few operations are one tile of any shape, for
// one thread: each of m k, n k and m n is below one_tile. Which of the two computes it, only the processor knows.
int64_t product(int64_t m, int64_t n, int64_t k, bool bf16_result, int threads) {
  const int64_t tile = tile_floats(std::min(m, widest_tile), std::min(n, widest_tile), k, bf16_result);
  const int64_t alone = std::min(3 * one_tile, tile_floats(m, n, k, bf16_result));
  return std::max({float_bytes * packed_floats(m, n, k, bf16_result, threads), threads * (float_bytes * tile + onednn_beyond),
                   float_bytes * alone + onednn_beyond});
}

// Every matrix is met in y = x W^T, dW += dy^T x (always fp32) and dx = dy W.
int64_t matrix(int64_t in, int64_t out, const BatchShape& s, int threads, Passes passes, bool logits = false) {
  const bool bf16 = s.dtype != DType::f32;
  const int64_t forward = product(s.rows(), out, in, bf16 && !logits, threads);
  if (passes == Passes::forward) return forward;
  return std::max({forward, product(out, in, s.rows(), false, threads), product(s.rows(), in, out, bf16, threads)});
}

int64_t matrices(const ModelSpec& spec, const BatchShape& s, int threads, Passes passes) {
  return std::max({matrix(spec.hidden, spec.qkv_width(), s, threads, passes),
                   matrix(spec.attention_width(), spec.hidden, s, threads, passes),
                   matrix(spec.hidden, spec.is_llama() ? 2 * spec.ffn : spec.ffn, s, threads, passes),
                   matrix(spec.ffn, spec.hidden, s, threads, passes), matrix(spec.hidden, spec.padded_vocab(), s, threads, passes, true)});
}

}  // namespace

std::vector<int> cpu_threads_by_position(const JobPlan& plan, const Topology& topology) {
  std::vector<int> threads;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const RankInfo& info = topology.ranks[static_cast<std::size_t>(rank)];
    if (info.device_kind != "cpu") continue;
    threads.resize(static_cast<std::size_t>(plan.replica_size));
    int& most = threads[static_cast<std::size_t>(plan.position_of(rank))];
    most = std::max(most, info.threads);
  }
  return threads;
}

int64_t kernel_memory(const ModelSpec& spec, const BatchShape& largest, int threads, int64_t largest_sum, Passes passes) {
  int64_t shared = std::max({smallest_block, attention_forward(spec, largest, threads), rope(spec, largest),
                             double_bytes * ceil_div(std::max(largest_sum, largest.rows()), elements_of_a_sum)});
  if (passes == Passes::forward_and_backward)
    shared = std::max({shared, attention_backward(spec, largest, threads), row_sums(spec, largest)});
  return shared + matrices(spec, largest, threads, passes);
}

}  // namespace nsp
