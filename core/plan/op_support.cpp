#include "core/plan/op_support.hpp"

#include <vector>

#include "core/device/op_name.hpp"

namespace nsp {
namespace {

struct Need {
  nsp_op op;
  DType dtype;
};

std::vector<Need> needs_of(const ModelSpec& spec, DType dtype, bool trains) {
  // What is summed, counted or averaged is fp32 in every dtype: logits, gradients, the states of replicas.
  std::vector<Need> needs = {Need{NSP_OP_embedding_forward, dtype},
                             Need{NSP_OP_matmul, dtype},
                             Need{NSP_OP_attention_forward, dtype},
                             Need{NSP_OP_axpy, dtype},
                             Need{NSP_OP_classifier, DType::f32},
                             Need{NSP_OP_sum, DType::f32},
                             Need{NSP_OP_copy, dtype}};
  const bool llama = spec.family == "llama";
  if (llama)
    needs.insert(needs.end(), {Need{NSP_OP_rmsnorm_forward, dtype}, Need{NSP_OP_rope, dtype}, Need{NSP_OP_swiglu_forward, dtype}});
  else
    needs.insert(needs.end(), {Need{NSP_OP_layernorm_forward, dtype}, Need{NSP_OP_gelu_forward, dtype}});
  if (!trains) return needs;
  needs.insert(needs.end(),
               {Need{NSP_OP_embedding_backward, dtype}, Need{NSP_OP_bias_gradient, dtype}, Need{NSP_OP_attention_backward, dtype},
                Need{NSP_OP_copy, DType::f32}, Need{NSP_OP_lerp, DType::f32}, Need{NSP_OP_sum_of_squares, DType::f32}});
  if (llama)
    needs.insert(needs.end(), {Need{NSP_OP_rmsnorm_backward, dtype}, Need{NSP_OP_swiglu_backward, dtype}});
  else
    needs.insert(needs.end(), {Need{NSP_OP_layernorm_backward, dtype}, Need{NSP_OP_gelu_backward, dtype}});
  if (dtype != DType::f32) needs.push_back(Need{NSP_OP_cast, DType::f32});  // of master weights and of the logits' gradient
  return needs;
}

}  // namespace

void check_ops(const Device& device, const ModelSpec& spec, DType dtype, const Optimizer* optimizer) {
  for (const Need& need : needs_of(spec, dtype, optimizer != nullptr)) {
    if (device.supports(need.op, need.dtype)) continue;
    throw Error(ErrorKind::plugin, "backend " + device.name() + " has no op " + op_name(need.op) + " in " + name_of(need.dtype) +
                                       ". A model of the family " + spec.family + " needs it with train.dtype = " + name_of(dtype) +
                                       ". Choose another --train.dtype, or another backend with --backend (nsp_app plugins lists them).");
  }
  if (optimizer == nullptr) return;
  for (const nsp_op op : optimizer->ops()) {
    if (device.supports(op, DType::f32)) continue;  // it works on fp32 weights whatever train.dtype is
    throw Error(ErrorKind::plugin,
                "backend " + device.name() + " has no op " + op_name(op) +
                    " in fp32. The optimizer of this run updates the weights with it. Choose another backend with --backend, or "
                    "another optimizer with --plugins (nsp_app plugins lists them).");
  }
}

}  // namespace nsp
