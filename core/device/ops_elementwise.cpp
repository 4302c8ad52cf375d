// Ops on plain ranges of numbers: what optimizers, sync policies and metrics compute with.
#include "core/device/op_check.hpp"

namespace nsp {

void Ops::copy(TensorView out, TensorView x) const {
  const OpCheck check("copy");
  check.rank({"out", out}, x.rank());
  for (int d = 0; d < x.rank(); ++d) check.that(out.size(d) == x.size(d), "out and x have the same sizes");
  check.dtype({"out", out}, x.dtype());
  check.that(x.elements() == 0 || (x.data() != nullptr && out.data() != nullptr), "out and x have data");
  const nsp_copy_args args{sizeof args, out.c(), x.c()};
  call_op(*stream_, "copy", &nsp_op_table::copy, args, x.dtype());
}

void Ops::cast(TensorView out, TensorView x) const {
  const OpCheck check("cast");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"out", out}, x.size(0));
  check.same_floating({{"x", x}});
  check.same_floating({{"out", out}});
  check.that(out.dtype() != x.dtype(), "out has another dtype than x");
  const nsp_cast_args args{sizeof args, out.c(), x.c()};
  call_op(*stream_, "cast", &nsp_op_table::cast, args, x.dtype());
}

void Ops::scale(TensorView x, float a) const {
  const OpCheck check("scale");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.same_floating({{"x", x}});
  const nsp_scale_args args{sizeof args, x.c(), a};
  call_op(*stream_, "scale", &nsp_op_table::scale, args, x.dtype());
}

void Ops::axpy(TensorView y, TensorView x, float a) const {
  const OpCheck check("axpy");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"y", y}, x.size(0));
  check.same_floating({{"x", x}});
  if (y.dtype() != x.dtype()) check.statistic({"y", y}, x.dtype());
  const nsp_axpy_args args{sizeof args, y.c(), x.c(), a};
  call_op(*stream_, "axpy", &nsp_op_table::axpy, args, x.dtype());
}

void Ops::lerp(TensorView out, TensorView base, TensorView x, TensorView origin, float weight) const {
  const OpCheck check("lerp");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"out", out}, x.size(0));
  check.vector({"base", base}, x.size(0));
  check.vector({"origin", origin}, x.size(0));
  check.same_floating({{"x", x}, {"out", out}, {"base", base}, {"origin", origin}});
  const nsp_lerp_args args{sizeof args, out.c(), base.c(), x.c(), origin.c(), weight};
  call_op(*stream_, "lerp", &nsp_op_table::lerp, args, x.dtype());
}

void Ops::sum(TensorView out, TensorView x, bool accumulate) const {
  const OpCheck check("sum");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"out", out}, 1);
  check.same_floating({{"x", x}});
  check.dtype({"out", out}, DType::f64);
  const nsp_sum_args args{sizeof args, out.c(), x.c(), accumulate ? 1 : 0};
  call_op(*stream_, "sum", &nsp_op_table::sum, args, x.dtype());
}

void Ops::sum_of_squares(TensorView out, TensorView x, bool accumulate) const {
  const OpCheck check("sum_of_squares");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"out", out}, 1);
  check.same_floating({{"x", x}});
  check.dtype({"out", out}, DType::f64);
  const nsp_sum_of_squares_args args{sizeof args, out.c(), x.c(), accumulate ? 1 : 0};
  call_op(*stream_, "sum_of_squares", &nsp_op_table::sum_of_squares, args, x.dtype());
}

void Ops::all_finite(TensorView bad, TensorView x) const {
  const OpCheck check("all_finite");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.vector({"bad", bad}, 1);
  check.same_floating({{"x", x}});
  check.dtype({"bad", bad}, DType::i32);
  const nsp_all_finite_args args{sizeof args, bad.c(), x.c()};
  call_op(*stream_, "all_finite", &nsp_op_table::all_finite, args, x.dtype());
}

void Ops::random_fill(TensorView x, uint64_t seed, uint64_t stream, uint64_t offset, float low, float scale, bool normal) const {
  const OpCheck check("random_fill");
  check.rank({"x", x}, 1);
  check.vector({"x", x}, x.size(0));
  check.same_floating({{"x", x}});
  const nsp_random_fill_args args{sizeof args, x.c(), seed, stream, offset, low, scale, normal ? 1 : 0};
  call_op(*stream_, "random_fill", &nsp_op_table::random_fill, args, x.dtype());
}

void Ops::adamw(TensorView weight, TensorView gradient, TensorView moment1, TensorView moment2, const AdamwScalars& s) const {
  const OpCheck check("adamw");
  check.rank({"weight", weight}, 1);
  check.vector({"weight", weight}, weight.size(0));
  check.vector({"gradient", gradient}, weight.size(0));
  check.vector({"moment1", moment1}, weight.size(0));
  check.vector({"moment2", moment2}, weight.size(0));
  check.same_floating({{"weight", weight}, {"gradient", gradient}, {"moment1", moment1}, {"moment2", moment2}});
  check.statistic({"weight", weight}, weight.dtype());  // not bf16: updates are made on master weights
  const nsp_adamw_args args{sizeof args, weight.c(),     gradient.c(),      moment1.c(),   moment2.c(),
                            s.lr,        s.beta1,        s.one_minus_beta1, s.beta2,       s.one_minus_beta2,
                            s.eps,       s.weight_decay, s.correction1,     s.correction2, s.gradient_scale};
  call_op(*stream_, "adamw", &nsp_op_table::adamw, args, weight.dtype());
}

void Ops::sgd(TensorView weight, TensorView gradient, TensorView momentum, const SgdScalars& s) const {
  const OpCheck check("sgd");
  check.rank({"weight", weight}, 1);
  check.vector({"weight", weight}, weight.size(0));
  check.vector({"gradient", gradient}, weight.size(0));
  check.same_floating({{"weight", weight}, {"gradient", gradient}});
  check.statistic({"weight", weight}, weight.dtype());  // not bf16: updates are made on master weights
  if (momentum.present()) {
    check.vector({"momentum", momentum}, weight.size(0));
    check.dtype({"momentum", momentum}, weight.dtype());
  }
  const nsp_sgd_args args{sizeof args, weight.c(),     gradient.c(),     momentum.c(),      s.lr,
                          s.momentum,  s.weight_decay, s.gradient_scale, s.nesterov ? 1 : 0};
  call_op(*stream_, "sgd", &nsp_op_table::sgd, args, weight.dtype());
}

void Ops::zero(TensorView x) const {
  const OpCheck check("zero");
  check.that(x.dense(), "x is dense");
  stream_->fill(x.data(), 0, x.bytes());
}

}  // namespace nsp
