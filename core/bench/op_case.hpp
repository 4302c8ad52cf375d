// One call of one op of a backend's table as a benchmark knows it: what it computes on, and what that takes at least.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/op_name.hpp"
#include "core/model/spec.hpp"
#include "nsp/device.hpp"

namespace nsp::bench {

enum class Access { read, write, update };                      // update: read, and written in the same place
enum class Fill { noise, positive, tokens, positions, zeros };  // noise: in [-0.5, 0.5); positive: in [0.5, 1.5)

// A dense tensor of a case.
struct Operand {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes;  // at most four
  Access access = Access::read;
  Fill fill = Fill::noise;
  bool shared = false;   // one for all calls; else each of the sets that calls rotate over has its own
  int64_t touched = -1;  // elements that a call reads or writes; -1 = all. Of a table: those of the rows that are looked up
  int64_t below = 0;     // of tokens, targets and positions: values are in [0, below)

  int64_t elements() const;
  int64_t bytes() const;  // of its memory
  int64_t moved() const;  // bytes that a call has to move at least: what is read once, what is written once
};

struct OpCase {
  nsp_op op = NSP_OP_COUNT;
  DType dtype = DType::f32;  // that the backend is asked for
  std::string what;          // its place in a training step: "qkv dW"
  std::string shape;         // "2048x384x128"
  bool in_family = true;     // false: the other family of models has this op; it gets the sizes of this model
  // Arithmetic of one call, multiplication and addition counted apart; > 0 where speed is judged by it (matmul, attention). Else
  // 0: the op is judged by the bytes that it moves.
  double flops = 0;
  std::vector<Operand> operands;
  std::function<void(const Ops& ops, const std::vector<TensorView>& tensors)> call;  // tensors: in the order of the operands

  double bytes() const;  // moved at least by one call: the sum over operands
};

// A micro-step on one rank.
struct StepShape {
  ModelSpec spec;  // completed
  int64_t micro_batch = 0;
  int64_t context = 0;
  int64_t rows() const { return micro_batch * context; }
};

// Elements of the ops on plain ranges (optimizers, casts, sums): the model's parameters, but at most 2^24.
int64_t range_elements(const ModelSpec& spec);

// [M,K] x [K,N]: 2 M N K.
double matmul_flops(int64_t m, int64_t n, int64_t k);

// Pairs of query and key that see each other in one sequence under the causal mask and the window: sum over t of min(t + 1, W).
double attention_pairs(int64_t tokens, int64_t window);

// Two products (q k^T, p v) of 2 D operations a pair and query head: 4 B H D pairs. The softmax is not counted.
double attention_forward_flops(const StepShape& step);

// Five products: q k^T again, since only lse was kept, dout v^T, p^T dout, ds k, ds^T q: 10 B H D pairs (Dao et al.,
// arXiv 2205.14135, algorithm 4). peak_share of a training step counts four of them, as ModelSpec::flops_per_token says.
double attention_backward_flops(const StepShape& step);

// The cases of a step in this dtype: every op of the table at least once, in the order of the table.
std::vector<OpCase> op_cases(const StepShape& step, DType dtype);

// Parts of op_cases, by file.
void add_layer_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype);
void add_matrix_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype);
void add_range_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype);

// "2048x384"
std::string shape_of(const std::vector<int64_t>& sizes);

}  // namespace nsp::bench
