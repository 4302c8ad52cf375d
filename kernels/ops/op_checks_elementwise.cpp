// What the ops without a shape of their own require: the same extent of all tensors.
#include <initializer_list>
#include <utility>

#include "ops/checks.hpp"
#include "ops/kernels.hpp"

namespace nsp::cpu {

namespace {

using Named = std::pair<const char*, const nsp_tensor*>;

void same_matrix(const char* op, std::initializer_list<Named> tensors) {
  const Checker c(op);
  const int32_t dtype = c.floating(tensors.begin()->first, *tensors.begin()->second);
  Dim n{"N"}, channels{"C"};
  for (const auto& [name, tensor] : tensors) c.tensor(name, *tensor, dtype, {&n, &channels});
}

void same_vector(const char* op, std::initializer_list<Named> tensors, int32_t dtype) {
  const Checker c(op);
  Dim n{"n"};
  for (const auto& [name, tensor] : tensors) c.tensor(name, *tensor, dtype, {&n});
}
void same_vector(const char* op, std::initializer_list<Named> tensors) {
  same_vector(op, tensors, Checker(op).floating(tensors.begin()->first, *tensors.begin()->second));
}

void reduction(const char* op, const char* name, const nsp_tensor& out, int32_t dtype, const nsp_tensor& x) {
  const Checker c(op);
  Dim n{"n"}, one{"1", 1, "the contract"};
  c.tensor(name, out, dtype, {&one});
  c.tensor("x", x, c.floating("x", x), {&n});
}

}  // namespace

void check(const nsp_gelu_forward_args& a) {
  same_matrix("gelu_forward", {{"out", &a.out}, {"x", &a.x}});
}
void check(const nsp_gelu_backward_args& a) {
  same_matrix("gelu_backward", {{"dx", &a.dx}, {"dout", &a.dout}, {"x", &a.x}});
}
void check(const nsp_swiglu_forward_args& a) {
  same_matrix("swiglu_forward", {{"out", &a.out}, {"gate", &a.gate}, {"up", &a.up}});
}
void check(const nsp_swiglu_backward_args& a) {
  same_matrix("swiglu_backward", {{"dgate", &a.dgate}, {"dup", &a.dup}, {"dout", &a.dout}, {"gate", &a.gate}, {"up", &a.up}});
}

void check(const nsp_copy_args& a) {
  const Checker c("copy");
  c.require(a.x.rank >= 1 && a.x.rank <= NSP_MAX_RANK, "x has rank " + std::to_string(a.x.rank) + ", expected 1 to 5");
  c.require(a.x.dtype >= NSP_F32 && a.x.dtype <= NSP_I64, "x has an unknown dtype");
  Dim d[NSP_MAX_RANK] = {{"d0"}, {"d1"}, {"d2"}, {"d3"}, {"d4"}};
  for (const auto& [name, tensor] : {Named{"x", &a.x}, {"out", &a.out}}) {
    switch (a.x.rank) {
      case 1:
        c.tensor(name, *tensor, a.x.dtype, {&d[0]}, Layout::any);
        break;
      case 2:
        c.tensor(name, *tensor, a.x.dtype, {&d[0], &d[1]}, Layout::any);
        break;
      case 3:
        c.tensor(name, *tensor, a.x.dtype, {&d[0], &d[1], &d[2]}, Layout::any);
        break;
      case 4:
        c.tensor(name, *tensor, a.x.dtype, {&d[0], &d[1], &d[2], &d[3]}, Layout::any);
        break;
      default:
        c.tensor(name, *tensor, a.x.dtype, {&d[0], &d[1], &d[2], &d[3], &d[4]}, Layout::any);
        break;
    }
  }
}

void check(const nsp_cast_args& a) {
  const Checker c("cast");
  c.require((a.x.dtype == NSP_F32 && a.out.dtype == NSP_BF16) || (a.x.dtype == NSP_BF16 && a.out.dtype == NSP_F32),
            "x and out must be fp32 and bf16, or bf16 and fp32");
  Dim n{"n"};
  c.tensor("x", a.x, a.x.dtype, {&n});
  c.tensor("out", a.out, a.out.dtype, {&n});
}

void check(const nsp_scale_args& a) {
  same_vector("scale", {{"x", &a.x}});
}
void check(const nsp_axpy_args& a) {
  const Checker c("axpy");
  const int32_t dtype = c.floating("x", a.x);
  Dim n{"n"};
  c.tensor("y", a.y, a.y.dtype == dtype ? dtype : NSP_F32, {&n});
  c.tensor("x", a.x, dtype, {&n});
}
void check(const nsp_lerp_args& a) {
  same_vector("lerp", {{"out", &a.out}, {"base", &a.base}, {"x", &a.x}, {"origin", &a.origin}});
}
void check(const nsp_sum_args& a) {
  reduction("sum", "out", a.out, NSP_F64, a.x);
}
void check(const nsp_sum_of_squares_args& a) {
  reduction("sum_of_squares", "out", a.out, NSP_F64, a.x);
}
void check(const nsp_all_finite_args& a) {
  reduction("all_finite", "bad", a.bad, NSP_I32, a.x);
}

void check(const nsp_random_fill_args& a) {
  same_vector("random_fill", {{"x", &a.x}});
  Checker("random_fill").require(a.distribution == 0 || a.distribution == 1, "distribution is 0 (uniform) or 1 (normal)");
}

void check(const nsp_adamw_args& a) {
  same_vector("adamw", {{"weight", &a.weight}, {"gradient", &a.gradient}, {"moment1", &a.moment1}, {"moment2", &a.moment2}}, NSP_F32);
}

void check(const nsp_sgd_args& a) {
  const Checker c("sgd");
  Dim n{"n"};
  c.tensor("weight", a.weight, NSP_F32, {&n});
  c.tensor("gradient", a.gradient, NSP_F32, {&n});
  c.optional("momentum", a.momentum, NSP_F32, {&n});
}

}  // namespace nsp::cpu
