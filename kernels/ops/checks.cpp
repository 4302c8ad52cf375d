#include "ops/checks.hpp"

namespace nsp::cpu {

namespace {

uint64_t size_of(int32_t dtype) {
  switch (dtype) {
    case NSP_F32:
    case NSP_I32:
      return 4;
    case NSP_BF16:
      return 2;
    case NSP_F64:
    case NSP_I64:
      return 8;
    default:
      return 1;
  }
}

const char* name_of(int32_t dtype) {
  constexpr const char* kNames[] = {"fp32", "bf16", "fp64", "int32", "uint8", "int64"};
  return dtype >= 0 && dtype <= NSP_I64 ? kNames[dtype] : "an unknown dtype";
}

std::string shape_of(const nsp_tensor& t) {
  std::string text = "[";
  for (int32_t d = 0; d < t.rank && d < NSP_MAX_RANK; ++d) {
    if (d > 0) text += ',';
    text += std::to_string(t.size[d]);
  }
  text += ']';
  return text;
}

std::string letters_of(std::initializer_list<Dim*> shape) {
  std::string text = "[";
  for (const Dim* dim : shape) {
    if (text.size() > 1) text += ',';
    text += dim->letter;
  }
  text += ']';
  return text;
}

}  // namespace

void Checker::fail(const char* name, const std::string& text) const {
  throw ArgumentError(std::string(op_) + ": " + name + " " + text);
}

void Checker::require(bool condition, const std::string& text) const {
  if (!condition) throw ArgumentError(std::string(op_) + ": " + text);
}

void Checker::tensor(const char* name, const nsp_tensor& t, int32_t dtype, std::initializer_list<Dim*> shape, Layout layout) const {
  if (t.rank != static_cast<int32_t>(shape.size())) {
    fail(name, "has rank " + std::to_string(t.rank) + ", expected " + letters_of(shape));
  }
  if (t.dtype != dtype) fail(name, std::string("is ") + name_of(t.dtype) + ", expected " + name_of(dtype));
  int64_t elements = 1;
  int d = 0;
  for (Dim* dim : shape) {
    if (t.size[d] < 0) fail(name, "has a negative size: " + shape_of(t));
    if (dim->value < 0) {
      dim->value = t.size[d];
      dim->from = name;
    } else if (dim->value != t.size[d]) {
      fail(name, "is " + shape_of(t) + ", expected " + letters_of(shape) + " with " + dim->letter + " = " + std::to_string(dim->value) +
                     " as in " + dim->from);
    }
    elements *= t.size[d++];
  }
  const int last = t.rank - 1;
  if (layout != Layout::any && t.size[last] > 1 && t.stride[last] != 1) {
    fail(name, "has stride " + std::to_string(t.stride[last]) + " in its last dimension, expected 1");
  }
  if (layout == Layout::matrix && t.size[0] > 1 && t.stride[0] < t.size[1]) {
    fail(name, "has rows that overlap: stride " + std::to_string(t.stride[0]) + " for " + std::to_string(t.size[1]) + " columns");
  }
  if (elements == 0) return;
  if (t.data == nullptr) fail(name, "has no data");
  if (reinterpret_cast<uintptr_t>(t.data) % size_of(dtype) != 0) fail(name, "is not aligned to its elements");
}

int32_t Checker::floating(const char* name, const nsp_tensor& t) const {
  if (t.dtype != NSP_F32 && t.dtype != NSP_BF16) fail(name, std::string("is ") + name_of(t.dtype) + ", expected fp32 or bf16");
  return t.dtype;
}

bool Checker::optional(const char* name, const nsp_tensor& t, int32_t dtype, std::initializer_list<Dim*> shape) const {
  if (t.data == nullptr && t.rank == 0) return false;
  tensor(name, t, dtype, shape);
  return true;
}

}  // namespace nsp::cpu
