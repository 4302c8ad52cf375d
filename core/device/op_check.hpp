// What Ops checks before it calls a backend, and the call itself.
//
// Checks compare integers only; texts are built when one fails, so that the hot path allocates nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "nsp/device.hpp"

namespace nsp {

// A tensor argument with the name that backend.h gives it.
struct OpTensor {
  const char* name;
  const TensorView& view;
};

class OpCheck {
 public:
  explicit OpCheck(const char* op) : op_(op) {}

  // Each throws Error(internal) that names op, tensor and both shapes or dtypes.
  void sizes(OpTensor t, std::initializer_list<int64_t> wanted) const;
  void rank(OpTensor t, int wanted) const;
  void dtype(OpTensor t, DType wanted) const;
  // Floating, and the same as the first tensor of the list.
  void same_floating(std::initializer_list<OpTensor> tensors) const;
  // Statistics and accumulated sums: fp32 beside fp32 and bf16, fp64 beside fp64.
  void statistic(OpTensor t, DType main) const;
  // Data is there, and elements of the last dimension are neighbours.
  void rows(std::initializer_list<OpTensor> tensors) const;
  // 1-D, dense, of n elements.
  void vector(OpTensor t, int64_t n) const;
  void that(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const char* op_;
};

// Throws Error(device) that names op and backend.
[[noreturn]] void fail_missing_op(const Device& device, const char* op);
[[noreturn]] void fail_unsupported_op(const Device& device, const char* op, DType dtype);

// Calls one op of the table. An op may lie beyond the end of an older module's table: then nothing of it may be read.
template <class Args>
void call_op(Stream& stream, const char* op, nsp_status (*nsp_op_table::*member)(nsp_stream*, const Args*), const Args& args, DType dtype) {
  const Device& device = stream.device();
  const nsp_op_table* table = device.table().ops;
  const auto* slot = &(table->*member);
  const auto end = reinterpret_cast<uintptr_t>(slot + 1) - reinterpret_cast<uintptr_t>(table);
  if (end > table->size || *slot == nullptr) fail_missing_op(device, op);
  const nsp_status status = (*slot)(stream.handle(), &args);
  if (status == NSP_ERR_UNSUPPORTED) fail_unsupported_op(device, op, dtype);
  if (status != NSP_OK) device.check(status, (std::string("op ") + op).c_str());
}

}  // namespace nsp
