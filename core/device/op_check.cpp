#include "core/device/op_check.hpp"

namespace nsp {
namespace {

std::string shape_text(const int64_t* sizes, std::size_t rank) {
  std::string text = "[";
  for (std::size_t d = 0; d < rank; ++d) {
    if (d > 0) text += ',';
    text += std::to_string(sizes[d]);
  }
  return text + ']';
}

std::string shape_text(const TensorView& view) {
  return shape_text(view.c().size, static_cast<std::size_t>(view.rank()));
}

bool floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f64;
}

}  // namespace

void OpCheck::fail(const std::string& what) const {
  throw Error(ErrorKind::internal, std::string("op ") + op_ + " was called wrongly. " + what +
                                       ". This is a bug in nsp or in a plug-in; please report it with this line.");
}

void OpCheck::sizes(OpTensor t, std::initializer_list<int64_t> wanted) const {
  bool equal = t.view.rank() == static_cast<int>(wanted.size());
  int d = 0;
  for (int64_t size : wanted) {
    if (!equal) break;
    equal = t.view.size(d++) == size;
  }
  if (!equal) fail(std::string(t.name) + " is " + shape_text(t.view) + " and must be " + shape_text(wanted.begin(), wanted.size()));
}

void OpCheck::rank(OpTensor t, int wanted) const {
  if (t.view.rank() != wanted)
    fail(std::string(t.name) + " is " + shape_text(t.view) + " and must have " + std::to_string(wanted) + " dimensions");
}

void OpCheck::dtype(OpTensor t, DType wanted) const {
  if (t.view.dtype() != wanted) fail(std::string(t.name) + " is " + name_of(t.view.dtype()) + " and must be " + name_of(wanted));
}

void OpCheck::same_floating(std::initializer_list<OpTensor> tensors) const {
  const OpTensor& first = *tensors.begin();
  if (!floating(first.view.dtype())) fail(std::string(first.name) + " is " + name_of(first.view.dtype()) + " and must be a floating type");
  for (const OpTensor& t : tensors) dtype(t, first.view.dtype());
}

void OpCheck::statistic(OpTensor t, DType main) const {
  dtype(t, main == DType::f64 ? DType::f64 : DType::f32);
}

void OpCheck::rows(std::initializer_list<OpTensor> tensors) const {
  for (const OpTensor& t : tensors) {
    const int last = t.view.rank() - 1;
    if (t.view.data() == nullptr && t.view.elements() > 0) fail(std::string(t.name) + " " + shape_text(t.view) + " has no data");
    if (last >= 0 && t.view.size(last) > 1 && t.view.stride(last) != 1) {
      fail(std::string(t.name) + " has stride " + std::to_string(t.view.stride(last)) + " in its last dimension and must have 1");
    }
  }
}

void OpCheck::vector(OpTensor t, int64_t n) const {
  sizes(t, {n});
  rows({t});
}

void fail_missing_op(const Device& device, const char* op) {
  throw Error(ErrorKind::device,
              std::string("op ") + op + " is missing in backend " + device.name() +
                  ". The backend was built before the op existed or does not offer it. Use a newer backend module, or another "
                  "one with --backend (nsp_app plugins lists them).");
}

void fail_unsupported_op(const Device& device, const char* op, DType dtype) {
  throw Error(ErrorKind::device, std::string("op ") + op + " does not exist for " + name_of(dtype) + " in backend " + device.name() +
                                     ". Choose another train.dtype, or another backend with --backend.");
}

}  // namespace nsp
