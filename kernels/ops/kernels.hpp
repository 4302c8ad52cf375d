// The kernels: one function per op of NSP_OP_LIST, with arguments that ops/op_checks.cpp has passed. Run on the executor
// thread. A kernel may throw only for what the host cannot check: values in device memory, or memory that ran out.
#pragma once

#include "cpu/executor.hpp"
#include "nsp/backend.h"

namespace nsp::cpu {

namespace kernels {
#define NSP_KERNEL(name, tensors) void name(Context& context, const nsp_##name##_args& args);
NSP_OP_LIST(NSP_KERNEL)
#undef NSP_KERNEL
}  // namespace kernels

// Throws ArgumentError that names the op and the tensor.
#define NSP_CHECK(name, tensors) void check(const nsp_##name##_args& args);
NSP_OP_LIST(NSP_CHECK)
#undef NSP_CHECK

inline bool present(const nsp_tensor& t) {
  return t.rank > 0;
}

}  // namespace nsp::cpu
