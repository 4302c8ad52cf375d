// Ops of attention: its positions and itself.
#include "core/device/op_check.hpp"

namespace nsp {
namespace {

// q [B,T,H,D]; k, v [B,S,G,D] with G dividing H; lse [B,H,T]; document_start [B,T].
void check_attention(const OpCheck& check, const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& out,
                     const TensorView& lse, const TensorView& document_start, int64_t window) {
  check.rank({"q", q}, 4);
  check.rank({"k", k}, 4);
  check.sizes({"k", k}, {q.size(0), k.size(1), k.size(2), q.size(3)});
  check.sizes({"v", v}, {k.size(0), k.size(1), k.size(2), k.size(3)});
  check.sizes({"out", out}, {q.size(0), q.size(1), q.size(2), q.size(3)});
  check.sizes({"lse", lse}, {q.size(0), q.size(2), q.size(1)});
  check.that(k.size(2) > 0 && q.size(2) % k.size(2) == 0, "the number of key/value heads divides the number of query heads");
  check.that(window >= 0, "the window is 0 (no limit) or positive");
  check.same_floating({{"q", q}, {"k", k}, {"v", v}, {"out", out}});
  check.statistic({"lse", lse}, q.dtype());
  check.rows({{"q", q}, {"k", k}, {"v", v}, {"out", out}, {"lse", lse}, {"document_start", document_start}});
  if (document_start.present()) {
    check.sizes({"document_start", document_start}, {q.size(0), q.size(1)});
    check.dtype({"document_start", document_start}, DType::i32);
  }
}

}  // namespace

void Ops::rope(TensorView out, TensorView x, TensorView positions, float theta, bool inverse) const {
  const OpCheck check("rope");
  check.rank({"x", x}, 4);
  check.sizes({"out", out}, {x.size(0), x.size(1), x.size(2), x.size(3)});
  check.sizes({"positions", positions}, {x.size(0), x.size(1)});
  check.dtype({"positions", positions}, DType::i32);
  check.same_floating({{"x", x}, {"out", out}});
  check.rows({{"out", out}, {"x", x}, {"positions", positions}});
  check.that(x.size(3) % 2 == 0, "the head size is even");
  const nsp_rope_args args{sizeof args, out.c(), x.c(), positions.c(), theta, inverse ? 1 : 0};
  call_op(*stream_, "rope", &nsp_op_table::rope, args, x.dtype());
}

void Ops::attention_forward(TensorView out, TensorView lse, TensorView q, TensorView k, TensorView v, TensorView document_start,
                            AttentionOptions options) const {
  const OpCheck check("attention_forward");
  check_attention(check, q, k, v, out, lse, document_start, options.window);
  const nsp_attention_forward_args args{
      sizeof args,          out.c(),       lse.c(), q.c(), k.c(), v.c(), document_start.c(), options.scale, options.causal ? 1 : 0,
      options.query_offset, options.window};
  call_op(*stream_, "attention_forward", &nsp_op_table::attention_forward, args, q.dtype());
}

void Ops::attention_backward(TensorView dq, TensorView dk, TensorView dv, TensorView dout, TensorView q, TensorView k, TensorView v,
                             TensorView out, TensorView lse, TensorView document_start, AttentionOptions options) const {
  const OpCheck check("attention_backward");
  check_attention(check, q, k, v, out, lse, document_start, options.window);
  check.sizes({"dq", dq}, {q.size(0), q.size(1), q.size(2), q.size(3)});
  check.sizes({"dout", dout}, {q.size(0), q.size(1), q.size(2), q.size(3)});
  check.sizes({"dk", dk}, {k.size(0), k.size(1), k.size(2), k.size(3)});
  check.sizes({"dv", dv}, {k.size(0), k.size(1), k.size(2), k.size(3)});
  check.same_floating({{"q", q}, {"dq", dq}, {"dk", dk}, {"dv", dv}, {"dout", dout}});
  check.rows({{"dq", dq}, {"dk", dk}, {"dv", dv}, {"dout", dout}});
  const nsp_attention_backward_args args{sizeof args,
                                         dq.c(),
                                         dk.c(),
                                         dv.c(),
                                         dout.c(),
                                         q.c(),
                                         k.c(),
                                         v.c(),
                                         out.c(),
                                         lse.c(),
                                         document_start.c(),
                                         options.scale,
                                         options.causal ? 1 : 0,
                                         options.query_offset,
                                         options.window};
  call_op(*stream_, "attention_backward", &nsp_op_table::attention_backward, args, q.dtype());
}

}  // namespace nsp
