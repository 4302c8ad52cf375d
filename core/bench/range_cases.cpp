// Ops on plain ranges: what optimizers, sync policies and metrics compute with, on as many elements as the model has parameters.
#include "core/bench/op_case.hpp"

namespace nsp::bench {
namespace {

using Tensors = std::vector<TensorView>;

// Scalars whose repetition keeps values ordinary: nothing overflows or becomes denormal in many calls.
constexpr float kSmall = 1e-6f;
constexpr Ops::AdamwScalars kAdamw{1e-6f, 0.9f, 0.1f, 0.95f, 0.05f, 1e-8f, 0.1f, 1.0f, 1.0f, 1.0f};
constexpr Ops::SgdScalars kSgd{1e-6f, 0.9f, 0.1f, 1.0f, false};

class RangeCases {
 public:
  RangeCases(std::vector<OpCase>* to, DType dtype) : to_(to), dtype_(dtype) {}
  Operand range(int64_t n, Access access, Fill fill = Fill::noise) const { return {dtype_, {n}, access, fill}; }
  void add(nsp_op op, const char* what, std::vector<Operand> operands, std::function<void(const Ops&, const Tensors&)> call) {
    OpCase c;
    c.op = op;
    c.dtype = dtype_;
    c.what = what;
    c.shape = shape_of(operands.back().sizes);  // the last operand is always a range
    c.operands = std::move(operands);
    c.call = std::move(call);
    to_->push_back(std::move(c));
  }

 private:
  std::vector<OpCase>* to_;
  DType dtype_;
};

Operand result(DType dtype, Access access) {
  return {dtype, {1}, access, Fill::zeros, true};
}

void add_updates(RangeCases& cases, int64_t n) {
  const Operand changed = cases.range(n, Access::update), read = cases.range(n, Access::read);
  const Operand moment = cases.range(n, Access::update, Fill::positive);
  cases.add(NSP_OP_adamw, "parameters", {changed, read, changed, moment},
            [](const Ops& ops, const Tensors& t) { ops.adamw(t[0], t[1], t[2], t[3], kAdamw); });
  cases.add(NSP_OP_sgd, "parameters", {changed, read, changed}, [](const Ops& ops, const Tensors& t) { ops.sgd(t[0], t[1], t[2], kSgd); });
}

}  // namespace

void add_range_cases(std::vector<OpCase>* to, const StepShape& step, DType dtype) {
  RangeCases cases(to, dtype);
  const int64_t n = range_elements(step.spec), stream = step.rows() * step.spec.hidden;
  const DType other = dtype == DType::f32 ? DType::bf16 : DType::f32;
  const auto read = [&](int64_t elements) { return cases.range(elements, Access::read); };
  cases.add(NSP_OP_copy, "parameters", {cases.range(n, Access::write), read(n)},
            [](const Ops& ops, const Tensors& t) { ops.copy(t[0], t[1]); });
  cases.add(NSP_OP_cast, other == DType::bf16 ? "parameters to bf16" : "parameters to fp32", {{other, {n}, Access::write}, read(n)},
            [](const Ops& ops, const Tensors& t) { ops.cast(t[0], t[1]); });
  cases.add(NSP_OP_scale, "parameters", {cases.range(n, Access::update)}, [](const Ops& ops, const Tensors& t) { ops.scale(t[0], -1.0f); });
  const auto axpy = [](const Ops& ops, const Tensors& t) { ops.axpy(t[0], t[1], kSmall); };
  cases.add(NSP_OP_axpy, "residual", {cases.range(stream, Access::update), read(stream)}, axpy);
  cases.add(NSP_OP_axpy, "parameters", {cases.range(n, Access::update), read(n)}, axpy);
  cases.add(NSP_OP_lerp, "parameters", {cases.range(n, Access::write), read(n), read(n), read(n)},
            [](const Ops& ops, const Tensors& t) { ops.lerp(t[0], t[1], t[2], t[3], 0.5f); });
  cases.add(NSP_OP_sum, "parameters", {result(DType::f64, Access::write), read(n)},
            [](const Ops& ops, const Tensors& t) { ops.sum(t[0], t[1], false); });
  cases.add(NSP_OP_sum_of_squares, "parameters", {result(DType::f64, Access::write), read(n)},
            [](const Ops& ops, const Tensors& t) { ops.sum_of_squares(t[0], t[1], false); });
  cases.add(NSP_OP_all_finite, "parameters", {result(DType::i32, Access::update), read(n)},
            [](const Ops& ops, const Tensors& t) { ops.all_finite(t[0], t[1]); });
  cases.add(NSP_OP_random_fill, "parameters", {cases.range(n, Access::write)},
            [](const Ops& ops, const Tensors& t) { ops.random_fill(t[0], 1, 0, 0, -0.5f, 1.0f, false); });
  add_updates(cases, n);
}

}  // namespace nsp::bench
