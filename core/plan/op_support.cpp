#include "core/plan/op_support.hpp"

#include <vector>

namespace nsp {
namespace {

struct Need {
  nsp_op op;
  const char* name;
  DType dtype;
};

#define NSP_NEED(op, dtype) \
  Need {                    \
    NSP_OP_##op, #op, dtype \
  }

std::vector<Need> needs_of(const ModelSpec& spec, DType dtype, bool trains) {
  // What is summed, counted or averaged is fp32 in every dtype: logits, gradients, the states of replicas.
  std::vector<Need> needs = {NSP_NEED(embedding_forward, dtype),
                             NSP_NEED(matmul, dtype),
                             NSP_NEED(attention_forward, dtype),
                             NSP_NEED(axpy, dtype),
                             NSP_NEED(classifier, DType::f32),
                             NSP_NEED(sum, DType::f32),
                             NSP_NEED(copy, dtype)};
  const bool llama = spec.family == "llama";
  if (llama)
    needs.insert(needs.end(), {NSP_NEED(rmsnorm_forward, dtype), NSP_NEED(rope, dtype), NSP_NEED(swiglu_forward, dtype)});
  else
    needs.insert(needs.end(), {NSP_NEED(layernorm_forward, dtype), NSP_NEED(gelu_forward, dtype)});
  if (!trains) return needs;
  needs.insert(needs.end(), {NSP_NEED(embedding_backward, dtype), NSP_NEED(bias_gradient, dtype), NSP_NEED(attention_backward, dtype),
                             NSP_NEED(copy, DType::f32), NSP_NEED(lerp, DType::f32), NSP_NEED(sum_of_squares, DType::f32)});
  if (llama)
    needs.insert(needs.end(), {NSP_NEED(rmsnorm_backward, dtype), NSP_NEED(swiglu_backward, dtype)});
  else
    needs.insert(needs.end(), {NSP_NEED(layernorm_backward, dtype), NSP_NEED(gelu_backward, dtype)});
  if (dtype != DType::f32) needs.push_back(NSP_NEED(cast, DType::f32));  // of master weights and of the logits' gradient
  return needs;
}

#undef NSP_NEED

}  // namespace

void check_ops(const Device& device, const ModelSpec& spec, DType dtype, bool trains) {
  for (const Need& need : needs_of(spec, dtype, trains)) {
    if (device.supports(need.op, need.dtype)) continue;
    throw Error(ErrorKind::plugin, "backend " + device.name() + " has no op " + need.name + " in " + name_of(need.dtype) +
                                       ". A model of the family " + spec.family + " needs it with train.dtype = " + name_of(dtype) +
                                       ". Choose another --train.dtype, or another backend with --backend (nsp_app plugins lists them).");
  }
}

}  // namespace nsp
