// The ops of a model's layers beside its products: embedding, norms, rope, activation, classifier. Both families' are there, each with
// the sizes of this model.
#include <algorithm>

#include "core/bench/op_case.hpp"
#include "core/model/head.hpp"

namespace nsp::bench {
namespace {

using Tensors = std::vector<TensorView>;

class LayerCases {
 public:
  LayerCases(std::vector<OpCase>* to, const StepShape& step, DType dtype)
      : to_(to), spec_(step.spec), step_(step), dtype_(dtype), n_(step.rows()), c_(step.spec.hidden), f_(step.spec.ffn) {}

  void embedding() {
    const Operand out = rows(c_, Access::write), dout = rows(c_);
    const int64_t seen = n_ * c_, places = step_.context * c_;  // a position is the same row in every sequence
    const Operand tokens = lookup(Fill::tokens, spec_.vocab), table = table_of(dtype_, spec_.padded_vocab(), Access::read, seen);
    const Operand dtable = table_of(DType::f32, spec_.padded_vocab(), Access::update, seen);
    if (spec_.is_llama()) {
      add(NSP_OP_embedding_forward, "tokens", {out, tokens, table},
          [](const Ops& ops, const Tensors& t) { ops.embedding_forward(t[0], t[1], t[2]); });
      add(NSP_OP_embedding_backward, "tokens", {dout, tokens, dtable},
          [](const Ops& ops, const Tensors& t) { ops.embedding_backward(t[0], t[1], t[2]); });
      return;
    }
    const Operand positions = lookup(Fill::positions, step_.context), places_table = table_of(dtype_, spec_.context, Access::read, places);
    const Operand dplaces = table_of(DType::f32, spec_.context, Access::update, places);
    add(NSP_OP_embedding_forward, "tokens, positions", {out, tokens, table, positions, places_table},
        [](const Ops& ops, const Tensors& t) { ops.embedding_forward(t[0], t[1], t[2], t[3], t[4]); });
    add(NSP_OP_embedding_backward, "tokens, positions", {dout, tokens, dtable, positions, dplaces},
        [](const Ops& ops, const Tensors& t) { ops.embedding_backward(t[0], t[1], t[2], t[3], t[4]); });
  }

  void norms() {
    const float eps = static_cast<float>(spec_.norm_eps);
    const Operand out = rows(c_, Access::write), x = rows(c_), weight = channels(dtype_, Access::read);
    const Operand changed = rows(c_, Access::update), dweight = channels(DType::f32, Access::update);
    const Operand keep = statistic(Access::write), kept = statistic(Access::read);
    add(
        NSP_OP_layernorm_forward, "norm", {out, x, weight, weight, keep, keep},
        [eps](const Ops& ops, const Tensors& t) { ops.layernorm_forward(t[0], t[1], t[2], t[3], t[4], t[5], eps); }, !spec_.is_llama());
    add(
        NSP_OP_layernorm_backward, "norm, dx +=", {changed, dweight, dweight, x, x, weight, kept, kept},
        [](const Ops& ops, const Tensors& t) { ops.layernorm_backward(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], true); },
        !spec_.is_llama());
    add(
        NSP_OP_rmsnorm_forward, "norm", {out, x, weight, keep},
        [eps](const Ops& ops, const Tensors& t) { ops.rmsnorm_forward(t[0], t[1], t[2], t[3], eps); }, spec_.is_llama());
    add(
        NSP_OP_rmsnorm_backward, "norm, dx +=", {changed, dweight, x, x, weight, kept},
        [](const Ops& ops, const Tensors& t) { ops.rmsnorm_backward(t[0], t[1], t[2], t[3], t[4], t[5], true); }, spec_.is_llama());
  }

  // Turns queries and keys in place. A head size that is odd, which gpt2 allows, is rounded up.
  void rope() {
    const int64_t d = spec_.head_dim + spec_.head_dim % 2;
    const Operand heads{dtype_, {step_.micro_batch, step_.context, spec_.heads + spec_.kv_heads, d}, Access::update};
    Operand positions = lookup(Fill::positions, step_.context);
    positions.sizes = {step_.micro_batch, step_.context};
    const float theta = static_cast<float>(spec_.rope_theta);
    add(
        NSP_OP_rope, "q and k", {heads, positions}, [theta](const Ops& ops, const Tensors& t) { ops.rope(t[0], t[0], t[1], theta, false); },
        spec_.is_llama());
  }

  void activations() {
    const Operand x = rows(f_), out = rows(f_, Access::write), changed = rows(f_, Access::update);
    add(
        NSP_OP_gelu_forward, "ffn", {out, x}, [](const Ops& ops, const Tensors& t) { ops.gelu_forward(t[0], t[1]); }, !spec_.is_llama());
    add(
        NSP_OP_gelu_backward, "ffn, in place", {changed, x}, [](const Ops& ops, const Tensors& t) { ops.gelu_backward(t[0], t[0], t[1]); },
        !spec_.is_llama());
    // gate and up lie side by side in the rows of one tensor, as the model has them.
    const auto half = [](const TensorView& both, int64_t which) {
      const int64_t f = both.size(1) / 2;
      char* base = static_cast<char*>(both.data()) + which * f * static_cast<int64_t>(size_of(both.dtype()));
      return TensorView(base, both.dtype(), {both.size(0), f}, {both.stride(0), 1});
    };
    const Operand both = rows(2 * f_), dboth = rows(2 * f_, Access::write);
    add(
        NSP_OP_swiglu_forward, "ffn", {out, both},
        [half](const Ops& ops, const Tensors& t) { ops.swiglu_forward(t[0], half(t[1], 0), half(t[1], 1)); }, spec_.is_llama());
    add(
        NSP_OP_swiglu_backward, "ffn", {x, dboth, both},
        [half](const Ops& ops, const Tensors& t) { ops.swiglu_backward(half(t[1], 0), half(t[1], 1), t[0], half(t[2], 0), half(t[2], 1)); },
        spec_.is_llama());
  }

  void classifier() {
    const int64_t v = spec_.padded_vocab(), n = std::min(n_, Head::rows_of_a_piece(Head::default_logits_bytes, v));
    const Operand logits{dtype_, {n, v}, Access::update, Fill::noise, false, n * spec_.vocab};
    const Operand targets{DType::i32, {n}, Access::read, Fill::tokens, false, -1, spec_.vocab};
    add(NSP_OP_classifier, "loss and gradient", {logits, targets, {DType::f32, {n}, Access::write}},
        [vocab = spec_.vocab](const Ops& ops, const Tensors& t) { ops.classifier(t[0], t[1], t[2], vocab, 1.0f, true); });
  }

 private:
  Operand rows(int64_t width, Access access = Access::read) const { return {dtype_, {n_, width}, access}; }
  Operand channels(DType dtype, Access access) const { return {dtype, {c_}, access, Fill::positive, true}; }
  Operand statistic(Access access) const { return {DType::f32, {n_}, access, Fill::positive}; }
  Operand lookup(Fill fill, int64_t below) const { return {DType::i32, {n_}, Access::read, fill, false, -1, below}; }
  Operand table_of(DType dtype, int64_t rows, Access access, int64_t touched) const {
    return {dtype, {rows, c_}, access, Fill::noise, true, touched};
  }
  // The shape is that of the first operand.
  void add(nsp_op op, const char* what, std::vector<Operand> operands, std::function<void(const Ops&, const Tensors&)> call,
           bool in_family = true) {
    OpCase c;
    c.op = op;
    c.dtype = dtype_;
    c.what = what;
    c.shape = shape_of(operands.front().sizes);
    c.in_family = in_family;
    c.operands = std::move(operands);
    c.call = std::move(call);
    to_->push_back(std::move(c));
  }

  std::vector<OpCase>* to_;
  const ModelSpec& spec_;
  const StepShape& step_;
  DType dtype_;
  int64_t n_, c_, f_;
};

}  // namespace

void add_layer_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype) {
  LayerCases cases(to, step, dtype);
  cases.embedding();
  cases.norms();
  cases.rope();
  cases.activations();
  cases.classifier();
}

}  // namespace nsp::bench
