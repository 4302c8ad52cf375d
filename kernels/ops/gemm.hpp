// The seam behind matmul: our own code, or a library that computes one tile on one thread, where the borders of tiles depend
// on the shape alone. So the bits do not depend on the number of threads, and no library's own pool competes with ours.
#pragma once

#include <cstdint>
#include <memory>

namespace nsp::cpu {

// C[m,n] = op(A) op(B) + beta C, row-major; beta is 0 or 1. Row strides in elements.
struct Gemm {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t lda, ldb, ldc;
  float beta;
  bool bf16_factors, bf16_result;  // else fp32; sums are fp32 in any case
};

enum class GemmLibrary { packed, cblas, onednn };  // packed: our own (ops/packed_gemm.hpp); cblas: fp32 factors alone
enum class InstructionSet { sse, avx2, avx512 };

// What computes a product of this shape on this processor (ops/matmul_table.cpp).
GemmLibrary choose_library(const Gemm& whole, InstructionSet set);
// Rows and columns of a library's tile.
struct Tile {
  int64_t m, n;
};
Tile choose_tile(const Gemm& whole);
InstructionSet instruction_set();  // of this processor; the libraries choose their code by it, not by our build's flags

void cblas_tile(const Gemm& gemm, const float* a, const float* b, float* c);

// oneDNN's compiled products, kept by shape. prepare() on the executor thread, run() on any of its pool.
class OnednnKernels {
 public:
  static bool available();
  // Whether it multiplies bf16 with instructions for that. Elsewhere it refuses, or has slow ways.
  static bool has_bf16();
  static bool has_bf16_tiles();  // whether these are the matrix registers of AMX
  OnednnKernels();
  ~OnednnKernels();
  // Forgets all kernels if there are very many, so that ever new shapes do not fill the memory.
  void make_room();
  // Index for run(), valid until make_room(); -1 if it has nothing better than a plain loop for these bf16 factors.
  int prepare(const Gemm& gemm);
  void run(int kernel, const void* a, const void* b, void* c) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What matmul keeps between calls.
class GemmCache {
 public:
  InstructionSet set = instruction_set();
  OnednnKernels onednn;
};

}  // namespace nsp::cpu
