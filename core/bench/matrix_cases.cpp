// The products of a training step: each matrix of a block and the head's table in its three forms, and attention.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/bench/op_case.hpp"
#include "core/model/head.hpp"

namespace nsp::bench {
namespace {

using Tensors = std::vector<TensorView>;

struct Matrix {
  std::string name;
  int64_t in, out;
  bool bias;
};

std::vector<Matrix> matrices_of(const ModelSpec& s) {
  const bool biases = !s.is_llama();
  const Matrix wide = s.is_llama() ? Matrix{"gate_up", s.hidden, 2 * s.ffn, false} : Matrix{"fc", s.hidden, s.ffn, true};
  return {{"qkv", s.hidden, s.qkv_width(), s.qkv_bias},
          {"attention proj", s.attention_width(), s.hidden, biases},
          wide,
          {"ffn proj", s.ffn, s.hidden, biases}};
}

// [M,N] from [M,K] and [K,N], before either is transposed.
OpCase product(DType dtype, const std::string& what, int64_t m, int64_t n, int64_t k) {
  OpCase c;
  c.op = NSP_OP_matmul;
  c.dtype = dtype;
  c.what = what;
  c.shape = shape_of({m, n, k});
  c.flops = matmul_flops(m, n, k);
  return c;
}

// y [rows,out] = x W^T (+ bias), as Linear::forward calls it. y_dtype: the head's logits are fp32.
OpCase forward(DType dtype, DType y_dtype, const Matrix& w, int64_t rows) {
  OpCase c = product(dtype, w.name + " y", rows, w.out, w.in);
  c.operands = {{y_dtype, {rows, w.out}, Access::write}, {dtype, {rows, w.in}}, {dtype, {w.out, w.in}}};
  if (w.bias) c.operands.push_back({dtype, {w.out}});
  c.call = [bias = w.bias](const Ops& ops, const Tensors& t) {
    ops.matmul(t[0], t[1], t[2], {.transpose_b = true}, bias ? t[3] : TensorView());
  };
  return c;
}

// dx [rows,in] = dy W
OpCase input_gradient(DType dtype, const Matrix& w, int64_t rows) {
  OpCase c = product(dtype, w.name + " dx", rows, w.in, w.out);
  c.operands = {{dtype, {rows, w.in}, Access::write}, {dtype, {rows, w.out}}, {dtype, {w.out, w.in}}};
  c.call = [](const Ops& ops, const Tensors& t) { ops.matmul(t[0], t[1], t[2], {}); };
  return c;
}

// dW [out,in] += dy^T x, in fp32
OpCase weight_gradient(DType dtype, const Matrix& w, int64_t rows) {
  OpCase c = product(dtype, w.name + " dW", w.out, w.in, rows);
  c.operands = {{DType::f32, {w.out, w.in}, Access::update}, {dtype, {rows, w.out}}, {dtype, {rows, w.in}}};
  c.call = [](const Ops& ops, const Tensors& t) { ops.matmul(t[0], t[1], t[2], {.transpose_a = true, .accumulate = true}); };
  return c;
}

OpCase bias_gradient(DType dtype, const Matrix& w, int64_t rows) {
  OpCase c;
  c.op = NSP_OP_bias_gradient;
  c.dtype = dtype;
  c.what = w.name;
  c.shape = shape_of({rows, w.out});
  c.operands = {{DType::f32, {w.out}, Access::update, Fill::noise, true}, {dtype, {rows, w.out}}};
  c.call = [](const Ops& ops, const Tensors& t) { ops.bias_gradient(t[0], t[1]); };
  return c;
}

// q, k and v lie side by side in the rows of one tensor, as the model has them.
TensorView heads_of(const TensorView& qkv, const StepShape& step, int64_t first, int64_t heads) {
  const int64_t d = step.spec.head_dim, row = step.spec.qkv_width();
  char* base = static_cast<char*>(qkv.data()) + first * d * static_cast<int64_t>(size_of(qkv.dtype()));
  return TensorView(base, qkv.dtype(), {step.micro_batch, step.context, heads, d}, {step.context * row, row, d, 1});
}

struct Parts {
  TensorView q, k, v;
};

Parts parts_of(const TensorView& qkv, const StepShape& step) {
  const int64_t h = step.spec.heads, g = step.spec.kv_heads;
  return {heads_of(qkv, step, 0, h), heads_of(qkv, step, h, g), heads_of(qkv, step, h + g, g)};
}

Ops::AttentionOptions options_of(const ModelSpec& spec) {
  return {.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim))),
          .causal = true,
          .query_offset = 0,
          .window = spec.window};
}

// "B16 T128 H8 D16"; with G where key/value heads are shared.
std::string attention_shape(const StepShape& step) {
  std::ostringstream text;
  text << "B" << step.micro_batch << " T" << step.context << " H" << step.spec.heads;
  if (step.spec.kv_heads != step.spec.heads) text << " G" << step.spec.kv_heads;
  text << " D" << step.spec.head_dim;
  return text.str();
}

void add_attention(std::vector<OpCase>* to, const StepShape& step, DType dtype) {
  const ModelSpec& s = step.spec;
  const int64_t b = step.micro_batch, t = step.context;
  const Operand lse{DType::f32, {b, s.heads, t}, Access::write}, out{dtype, {b, t, s.heads, s.head_dim}, Access::write};
  const auto read = [](Operand o) {
    o.access = Access::read;
    return o;
  };
  const Operand qkv{dtype, {step.rows(), s.qkv_width()}};
  Operand dqkv = qkv;
  dqkv.access = Access::write;
  OpCase c;
  c.dtype = dtype;
  c.what = "causal";
  c.shape = attention_shape(step);
  c.op = NSP_OP_attention_forward;
  c.flops = attention_forward_flops(step);
  c.operands = {out, lse, qkv};
  c.call = [step](const Ops& ops, const Tensors& x) {
    const Parts p = parts_of(x[2], step);
    ops.attention_forward(x[0], x[1], p.q, p.k, p.v, {}, options_of(step.spec));
  };
  to->push_back(c);
  c.op = NSP_OP_attention_backward;
  c.flops = attention_backward_flops(step);
  c.operands = {dqkv, read(out), qkv, read(out), read(lse)};
  c.call = [step](const Ops& ops, const Tensors& x) {
    const Parts d = parts_of(x[0], step), p = parts_of(x[2], step);
    ops.attention_backward(d.q, d.k, d.v, x[1], p.q, p.k, p.v, x[3], x[4], {}, options_of(step.spec));
  };
  to->push_back(std::move(c));
}

}  // namespace

void add_matrix_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype) {
  const ModelSpec& s = step.spec;
  bool any_bias = false;
  for (const Matrix& w : matrices_of(s)) {
    to->push_back(forward(dtype, dtype, w, step.rows()));
    to->push_back(input_gradient(dtype, w, step.rows()));
    to->push_back(weight_gradient(dtype, w, step.rows()));
    if (!w.bias) continue;
    to->push_back(bias_gradient(dtype, w, step.rows()));
    any_bias = true;
  }
  if (!any_bias) {
    to->push_back(bias_gradient(dtype, matrices_of(s).front(), step.rows()));
    to->back().in_family = false;
  }
  // The head goes through its rows in pieces.
  const int64_t rows = std::min(step.rows(), Head::rows_of_a_piece(Head::default_logits_bytes, s.padded_vocab()));
  const Matrix head{"head", s.hidden, s.padded_vocab(), false};
  to->push_back(forward(dtype, DType::f32, head, rows));
  to->push_back(input_gradient(dtype, head, rows));
  to->push_back(weight_gradient(dtype, head, rows));
  add_attention(to, step, dtype);
}

}  // namespace nsp::bench
