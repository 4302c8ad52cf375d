// Typed pointers and strides of an argument tensor, small enough to be captured by a kernel.
#pragma once

#include <cstdint>

#include "nsp/backend.h"

namespace nsp::cpu {

template <class T>
struct Vector {  // [n], dense
  T* data;
  int64_t size;
  explicit Vector(const nsp_tensor& t) : data(static_cast<T*>(t.data)), size(t.size[0]) {}
  T& operator[](int64_t i) const { return data[i]; }
};

template <class T>
struct Matrix {  // [rows, columns], each row dense
  T* data;
  int64_t rows, columns, stride;
  explicit Matrix(const nsp_tensor& t) : data(static_cast<T*>(t.data)), rows(t.size[0]), columns(t.size[1]), stride(t.stride[0]) {}
  T* row(int64_t i) const { return data + i * stride; }
};

}  // namespace nsp::cpu
