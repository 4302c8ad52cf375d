// Ops of the model's layers, forward and backward.
#include "core/device/op_check.hpp"

namespace nsp {

void Ops::embedding_forward(TensorView out, TensorView tokens, TensorView table, TensorView positions, TensorView position_table) const {
  const OpCheck check("embedding_forward");
  check.rank({"out", out}, 2);
  check.rank({"table", table}, 2);
  check.sizes({"tokens", tokens}, {out.size(0)});
  check.dtype({"tokens", tokens}, DType::i32);
  check.sizes({"table", table}, {table.size(0), out.size(1)});
  check.same_floating({{"out", out}, {"table", table}});
  check.rows({{"out", out}, {"tokens", tokens}, {"table", table}, {"positions", positions}, {"position_table", position_table}});
  check.that(positions.present() == position_table.present(), "positions and position_table come together");
  if (positions.present()) {
    check.sizes({"positions", positions}, {out.size(0)});
    check.dtype({"positions", positions}, DType::i32);
    check.rank({"position_table", position_table}, 2);
    check.sizes({"position_table", position_table}, {position_table.size(0), out.size(1)});
    check.dtype({"position_table", position_table}, table.dtype());
  }
  const nsp_embedding_forward_args args{sizeof args, out.c(), tokens.c(), table.c(), positions.c(), position_table.c()};
  call_op(*stream_, "embedding_forward", &nsp_op_table::embedding_forward, args, out.dtype());
}

void Ops::embedding_backward(TensorView dout, TensorView tokens, TensorView dtable, TensorView positions,
                             TensorView dposition_table) const {
  const OpCheck check("embedding_backward");
  check.rank({"dout", dout}, 2);
  check.same_floating({{"dout", dout}});
  check.sizes({"tokens", tokens}, {dout.size(0)});
  check.dtype({"tokens", tokens}, DType::i32);
  check.rows({{"dout", dout}, {"tokens", tokens}, {"dtable", dtable}, {"positions", positions}, {"dposition_table", dposition_table}});
  check.that(positions.present() == dposition_table.present(), "positions and dposition_table come together");
  if (dtable.present()) {
    check.rank({"dtable", dtable}, 2);
    check.sizes({"dtable", dtable}, {dtable.size(0), dout.size(1)});
    check.statistic({"dtable", dtable}, dout.dtype());
  }
  if (positions.present()) {
    check.sizes({"positions", positions}, {dout.size(0)});
    check.dtype({"positions", positions}, DType::i32);
    check.rank({"dposition_table", dposition_table}, 2);
    check.sizes({"dposition_table", dposition_table}, {dposition_table.size(0), dout.size(1)});
    check.statistic({"dposition_table", dposition_table}, dout.dtype());
  }
  const nsp_embedding_backward_args args{sizeof args, dout.c(), tokens.c(), dtable.c(), positions.c(), dposition_table.c()};
  call_op(*stream_, "embedding_backward", &nsp_op_table::embedding_backward, args, dout.dtype());
}

void Ops::layernorm_forward(TensorView out, TensorView x, TensorView weight, TensorView bias, TensorView mean, TensorView rstd,
                            float eps) const {
  const OpCheck check("layernorm_forward");
  check.rank({"x", x}, 2);
  check.sizes({"out", out}, {x.size(0), x.size(1)});
  check.vector({"weight", weight}, x.size(1));
  check.vector({"bias", bias}, x.size(1));
  check.vector({"mean", mean}, x.size(0));
  check.vector({"rstd", rstd}, x.size(0));
  check.same_floating({{"x", x}, {"out", out}, {"weight", weight}, {"bias", bias}});
  check.statistic({"mean", mean}, x.dtype());
  check.statistic({"rstd", rstd}, x.dtype());
  check.rows({{"out", out}, {"x", x}});
  const nsp_layernorm_forward_args args{sizeof args, out.c(), x.c(), weight.c(), bias.c(), mean.c(), rstd.c(), eps};
  call_op(*stream_, "layernorm_forward", &nsp_op_table::layernorm_forward, args, x.dtype());
}

void Ops::layernorm_backward(TensorView dx, TensorView dweight, TensorView dbias, TensorView dout, TensorView x, TensorView weight,
                             TensorView mean, TensorView rstd, bool accumulate_dx) const {
  const OpCheck check("layernorm_backward");
  check.rank({"x", x}, 2);
  check.sizes({"dx", dx}, {x.size(0), x.size(1)});
  check.sizes({"dout", dout}, {x.size(0), x.size(1)});
  check.vector({"weight", weight}, x.size(1));
  check.vector({"dweight", dweight}, x.size(1));
  check.vector({"dbias", dbias}, x.size(1));
  check.vector({"mean", mean}, x.size(0));
  check.vector({"rstd", rstd}, x.size(0));
  check.same_floating({{"x", x}, {"dx", dx}, {"dout", dout}, {"weight", weight}});
  check.statistic({"dweight", dweight}, x.dtype());
  check.statistic({"dbias", dbias}, x.dtype());
  check.statistic({"mean", mean}, x.dtype());
  check.statistic({"rstd", rstd}, x.dtype());
  check.rows({{"dx", dx}, {"dout", dout}, {"x", x}});
  const nsp_layernorm_backward_args args{sizeof args, dx.c(),     dweight.c(), dbias.c(), dout.c(),
                                         x.c(),       weight.c(), mean.c(),    rstd.c(),  accumulate_dx ? 1 : 0};
  call_op(*stream_, "layernorm_backward", &nsp_op_table::layernorm_backward, args, x.dtype());
}

void Ops::rmsnorm_forward(TensorView out, TensorView x, TensorView weight, TensorView rstd, float eps) const {
  const OpCheck check("rmsnorm_forward");
  check.rank({"x", x}, 2);
  check.sizes({"out", out}, {x.size(0), x.size(1)});
  check.vector({"weight", weight}, x.size(1));
  check.vector({"rstd", rstd}, x.size(0));
  check.same_floating({{"x", x}, {"out", out}, {"weight", weight}});
  check.statistic({"rstd", rstd}, x.dtype());
  check.rows({{"out", out}, {"x", x}});
  const nsp_rmsnorm_forward_args args{sizeof args, out.c(), x.c(), weight.c(), rstd.c(), eps};
  call_op(*stream_, "rmsnorm_forward", &nsp_op_table::rmsnorm_forward, args, x.dtype());
}

void Ops::rmsnorm_backward(TensorView dx, TensorView dweight, TensorView dout, TensorView x, TensorView weight, TensorView rstd,
                           bool accumulate_dx) const {
  const OpCheck check("rmsnorm_backward");
  check.rank({"x", x}, 2);
  check.sizes({"dx", dx}, {x.size(0), x.size(1)});
  check.sizes({"dout", dout}, {x.size(0), x.size(1)});
  check.vector({"weight", weight}, x.size(1));
  check.vector({"dweight", dweight}, x.size(1));
  check.vector({"rstd", rstd}, x.size(0));
  check.same_floating({{"x", x}, {"dx", dx}, {"dout", dout}, {"weight", weight}});
  check.statistic({"dweight", dweight}, x.dtype());
  check.statistic({"rstd", rstd}, x.dtype());
  check.rows({{"dx", dx}, {"dout", dout}, {"x", x}});
  const nsp_rmsnorm_backward_args args{sizeof args, dx.c(), dweight.c(), dout.c(), x.c(), weight.c(), rstd.c(), accumulate_dx ? 1 : 0};
  call_op(*stream_, "rmsnorm_backward", &nsp_op_table::rmsnorm_backward, args, x.dtype());
}

void Ops::matmul(TensorView out, TensorView a, TensorView b, MatmulOptions options, TensorView bias) const {
  const OpCheck check("matmul");
  check.rank({"out", out}, 2);
  check.rank({"a", a}, 2);
  const int64_t m = out.size(0), n = out.size(1), k = a.size(options.transpose_a ? 0 : 1);
  check.sizes({"a", a}, {options.transpose_a ? k : m, options.transpose_a ? m : k});
  check.sizes({"b", b}, {options.transpose_b ? n : k, options.transpose_b ? k : n});
  check.same_floating({{"a", a}, {"b", b}});
  if (options.accumulate || out.dtype() != a.dtype()) check.statistic({"out", out}, a.dtype());
  check.rows({{"out", out}, {"a", a}, {"b", b}});
  if (bias.present()) {
    check.vector({"bias", bias}, n);
    check.dtype({"bias", bias}, a.dtype());
    check.that(!options.accumulate, "bias and accumulate exclude each other");
  }
  const nsp_matmul_args args{
      sizeof args, out.c(), a.c(), b.c(), bias.c(), options.transpose_a ? 1 : 0, options.transpose_b ? 1 : 0, options.accumulate ? 1 : 0};
  call_op(*stream_, "matmul", &nsp_op_table::matmul, args, a.dtype());
}

void Ops::bias_gradient(TensorView dbias, TensorView dout) const {
  const OpCheck check("bias_gradient");
  check.rank({"dout", dout}, 2);
  check.vector({"dbias", dbias}, dout.size(1));
  check.same_floating({{"dout", dout}});
  check.statistic({"dbias", dbias}, dout.dtype());
  check.rows({{"dout", dout}});
  const nsp_bias_gradient_args args{sizeof args, dbias.c(), dout.c()};
  call_op(*stream_, "bias_gradient", &nsp_op_table::bias_gradient, args, dout.dtype());
}

void Ops::gelu_forward(TensorView out, TensorView x) const {
  const OpCheck check("gelu_forward");
  check.rank({"x", x}, 2);
  check.sizes({"out", out}, {x.size(0), x.size(1)});
  check.same_floating({{"x", x}, {"out", out}});
  check.rows({{"out", out}, {"x", x}});
  const nsp_gelu_forward_args args{sizeof args, out.c(), x.c()};
  call_op(*stream_, "gelu_forward", &nsp_op_table::gelu_forward, args, x.dtype());
}

void Ops::gelu_backward(TensorView dx, TensorView dout, TensorView x) const {
  const OpCheck check("gelu_backward");
  check.rank({"x", x}, 2);
  check.sizes({"dx", dx}, {x.size(0), x.size(1)});
  check.sizes({"dout", dout}, {x.size(0), x.size(1)});
  check.same_floating({{"x", x}, {"dx", dx}, {"dout", dout}});
  check.rows({{"dx", dx}, {"dout", dout}, {"x", x}});
  const nsp_gelu_backward_args args{sizeof args, dx.c(), dout.c(), x.c()};
  call_op(*stream_, "gelu_backward", &nsp_op_table::gelu_backward, args, x.dtype());
}

void Ops::swiglu_forward(TensorView out, TensorView gate, TensorView up) const {
  const OpCheck check("swiglu_forward");
  check.rank({"gate", gate}, 2);
  check.sizes({"out", out}, {gate.size(0), gate.size(1)});
  check.sizes({"up", up}, {gate.size(0), gate.size(1)});
  check.same_floating({{"gate", gate}, {"out", out}, {"up", up}});
  check.rows({{"out", out}, {"gate", gate}, {"up", up}});
  const nsp_swiglu_forward_args args{sizeof args, out.c(), gate.c(), up.c()};
  call_op(*stream_, "swiglu_forward", &nsp_op_table::swiglu_forward, args, gate.dtype());
}

void Ops::swiglu_backward(TensorView dgate, TensorView dup, TensorView dout, TensorView gate, TensorView up) const {
  const OpCheck check("swiglu_backward");
  check.rank({"gate", gate}, 2);
  for (const OpTensor& t : {OpTensor{"dgate", dgate}, OpTensor{"dup", dup}, OpTensor{"dout", dout}, OpTensor{"up", up}}) {
    check.sizes(t, {gate.size(0), gate.size(1)});
  }
  check.same_floating({{"gate", gate}, {"dgate", dgate}, {"dup", dup}, {"dout", dout}, {"up", up}});
  check.rows({{"dgate", dgate}, {"dup", dup}, {"dout", dout}, {"gate", gate}, {"up", up}});
  const nsp_swiglu_backward_args args{sizeof args, dgate.c(), dup.c(), dout.c(), gate.c(), up.c()};
  call_op(*stream_, "swiglu_backward", &nsp_op_table::swiglu_backward, args, gate.dtype());
}

void Ops::classifier(TensorView logits, TensorView targets, TensorView losses, int64_t vocabulary, float gradient_scale,
                     bool write_gradient) const {
  const OpCheck check("classifier");
  check.rank({"logits", logits}, 2);
  check.vector({"targets", targets}, logits.size(0));
  check.vector({"losses", losses}, logits.size(0));
  check.dtype({"targets", targets}, DType::i32);
  check.same_floating({{"logits", logits}});
  check.statistic({"losses", losses}, logits.dtype());
  check.rows({{"logits", logits}});
  check.that(vocabulary >= 1 && vocabulary <= logits.size(1), "the vocabulary lies within the columns of the logits");
  const nsp_classifier_args args{sizeof args, logits.c(), targets.c(), losses.c(), vocabulary, gradient_scale, write_gradient ? 1 : 0};
  call_op(*stream_, "classifier", &nsp_op_table::classifier, args, logits.dtype());
}

}  // namespace nsp
