// What each op with a shape of its own requires. The letters are those of nsp/backend.h.
#include <limits>

#include "ops/checks.hpp"
#include "ops/kernels.hpp"

namespace nsp::cpu {

void check(const nsp_embedding_forward_args& a) {
  const Checker c("embedding_forward");
  const int32_t dtype = c.floating("out", a.out);
  Dim n{"N"}, channels{"C"}, v{"V"}, p{"P"};
  c.tensor("out", a.out, dtype, {&n, &channels});
  c.tensor("tokens", a.tokens, NSP_I32, {&n});
  c.tensor("table", a.table, dtype, {&v, &channels});
  const bool positions = c.optional("positions", a.positions, NSP_I32, {&n});
  const bool table = c.optional("position_table", a.position_table, dtype, {&p, &channels});
  c.require(positions == table, "positions and position_table go together");
}

void check(const nsp_embedding_backward_args& a) {
  const Checker c("embedding_backward");
  const int32_t dtype = c.floating("dout", a.dout);
  Dim n{"N"}, channels{"C"}, v{"V"}, p{"P"};
  c.tensor("dout", a.dout, dtype, {&n, &channels});
  c.tensor("tokens", a.tokens, NSP_I32, {&n});
  const bool table = c.optional("dtable", a.dtable, NSP_F32, {&v, &channels});
  const bool positions = c.optional("positions", a.positions, NSP_I32, {&n});
  const bool position_table = c.optional("dposition_table", a.dposition_table, NSP_F32, {&p, &channels});
  c.require(!position_table || positions, "dposition_table needs positions");
  c.require(table || position_table, "neither dtable nor dposition_table is given");
}

void check(const nsp_layernorm_forward_args& a) {
  const Checker c("layernorm_forward");
  const int32_t dtype = c.floating("x", a.x);
  Dim n{"N"}, channels{"C"};
  c.tensor("x", a.x, dtype, {&n, &channels});
  c.tensor("out", a.out, dtype, {&n, &channels});
  c.tensor("weight", a.weight, dtype, {&channels});
  c.tensor("bias", a.bias, dtype, {&channels});
  c.tensor("mean", a.mean, NSP_F32, {&n});
  c.tensor("rstd", a.rstd, NSP_F32, {&n});
}

void check(const nsp_layernorm_backward_args& a) {
  const Checker c("layernorm_backward");
  const int32_t dtype = c.floating("x", a.x);
  Dim n{"N"}, channels{"C"};
  c.tensor("x", a.x, dtype, {&n, &channels});
  c.tensor("dx", a.dx, dtype, {&n, &channels});
  c.tensor("dout", a.dout, dtype, {&n, &channels});
  c.tensor("dweight", a.dweight, NSP_F32, {&channels});
  c.tensor("dbias", a.dbias, NSP_F32, {&channels});
  c.tensor("weight", a.weight, dtype, {&channels});
  c.tensor("mean", a.mean, NSP_F32, {&n});
  c.tensor("rstd", a.rstd, NSP_F32, {&n});
}

void check(const nsp_rmsnorm_forward_args& a) {
  const Checker c("rmsnorm_forward");
  const int32_t dtype = c.floating("x", a.x);
  Dim n{"N"}, channels{"C"};
  c.tensor("x", a.x, dtype, {&n, &channels});
  c.tensor("out", a.out, dtype, {&n, &channels});
  c.tensor("weight", a.weight, dtype, {&channels});
  c.tensor("rstd", a.rstd, NSP_F32, {&n});
}

void check(const nsp_rmsnorm_backward_args& a) {
  const Checker c("rmsnorm_backward");
  const int32_t dtype = c.floating("x", a.x);
  Dim n{"N"}, channels{"C"};
  c.tensor("x", a.x, dtype, {&n, &channels});
  c.tensor("dx", a.dx, dtype, {&n, &channels});
  c.tensor("dout", a.dout, dtype, {&n, &channels});
  c.tensor("dweight", a.dweight, NSP_F32, {&channels});
  c.tensor("weight", a.weight, dtype, {&channels});
  c.tensor("rstd", a.rstd, NSP_F32, {&n});
}

void check(const nsp_matmul_args& a) {
  const Checker c("matmul");
  const int32_t dtype = c.floating("a", a.a);
  Dim m{"M"}, n{"N"}, k{"K"};
  c.tensor("out", a.out, a.out.dtype == dtype && !a.accumulate ? dtype : NSP_F32, {&m, &n}, Layout::matrix);
  if (a.transpose_a) {
    c.tensor("a (transposed)", a.a, dtype, {&k, &m}, Layout::matrix);
  } else {
    c.tensor("a", a.a, dtype, {&m, &k}, Layout::matrix);
  }
  if (a.transpose_b) {
    c.tensor("b (transposed)", a.b, dtype, {&n, &k}, Layout::matrix);
  } else {
    c.tensor("b", a.b, dtype, {&k, &n}, Layout::matrix);
  }
  const bool bias = c.optional("bias", a.bias, dtype, {&n});
  c.require(!bias || !a.accumulate, "bias does not go with accumulate");
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();  // what the C interface of BLAS can count
  for (const nsp_tensor* t : {&a.out, &a.a, &a.b}) {
    c.require(t->size[0] <= kLargest && t->size[1] <= kLargest && t->stride[0] <= kLargest, "a size or row stride is above 2^31 - 1");
  }
}

void check(const nsp_bias_gradient_args& a) {
  const Checker c("bias_gradient");
  const int32_t dtype = c.floating("dout", a.dout);
  Dim n{"N"}, channels{"C"};
  c.tensor("dout", a.dout, dtype, {&n, &channels});
  c.tensor("dbias", a.dbias, NSP_F32, {&channels});
}

void check(const nsp_rope_args& a) {
  const Checker c("rope");
  const int32_t dtype = c.floating("x", a.x);
  Dim b{"B"}, t{"T"}, h{"H"}, d{"D"};
  c.tensor("x", a.x, dtype, {&b, &t, &h, &d});
  c.tensor("out", a.out, dtype, {&b, &t, &h, &d});
  c.tensor("positions", a.positions, NSP_I32, {&b, &t});
  c.require(d.value % 2 == 0, "D is " + std::to_string(d.value) + ", expected an even number");
  c.require(a.theta > 0.0f, "theta must be above 0");
}

void check(const nsp_attention_forward_args& a) {
  const Checker c("attention_forward");
  const int32_t dtype = c.floating("q", a.q);
  Dim b{"B"}, t{"T"}, s{"S"}, h{"H"}, g{"G"}, d{"D"};
  c.tensor("q", a.q, dtype, {&b, &t, &h, &d});
  c.tensor("out", a.out, dtype, {&b, &t, &h, &d});
  c.tensor("lse", a.lse, NSP_F32, {&b, &h, &t});
  c.tensor("k", a.k, dtype, {&b, &s, &g, &d});
  c.tensor("v", a.v, dtype, {&b, &s, &g, &d});
  c.optional("document_start", a.document_start, NSP_I32, {&b, &t});
  c.require(h.value == 0 || (g.value > 0 && h.value % g.value == 0), "the query heads are not a multiple of the key/value heads");
  c.require(a.window >= 0, "window must not be negative");
}

void check(const nsp_attention_backward_args& a) {
  const Checker c("attention_backward");
  const int32_t dtype = c.floating("q", a.q);
  Dim b{"B"}, t{"T"}, s{"S"}, h{"H"}, g{"G"}, d{"D"};
  for (const auto& [name, tensor] : {std::pair{"q", &a.q}, {"dq", &a.dq}, {"dout", &a.dout}, {"out", &a.out}}) {
    c.tensor(name, *tensor, dtype, {&b, &t, &h, &d});
  }
  for (const auto& [name, tensor] : {std::pair{"k", &a.k}, {"v", &a.v}, {"dk", &a.dk}, {"dv", &a.dv}}) {
    c.tensor(name, *tensor, dtype, {&b, &s, &g, &d});
  }
  c.tensor("lse", a.lse, NSP_F32, {&b, &h, &t});
  c.optional("document_start", a.document_start, NSP_I32, {&b, &t});
  c.require(h.value == 0 || (g.value > 0 && h.value % g.value == 0), "the query heads are not a multiple of the key/value heads");
  c.require(a.window >= 0, "window must not be negative");
}

void check(const nsp_classifier_args& a) {
  const Checker c("classifier");
  const int32_t dtype = c.floating("logits", a.logits);
  Dim n{"N"}, v{"Vpadded"};
  c.tensor("logits", a.logits, dtype, {&n, &v});
  c.tensor("targets", a.targets, NSP_I32, {&n});
  c.tensor("losses", a.losses, NSP_F32, {&n});
  c.require(n.value == 0 || (a.vocabulary >= 1 && a.vocabulary <= v.value),
            "vocabulary is " + std::to_string(a.vocabulary) + ", expected 1 to " + std::to_string(v.value) + " (the columns of logits)");
}

}  // namespace nsp::cpu
