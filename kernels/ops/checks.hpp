// Checking of op arguments: shapes that share letters, dtypes, strides, pointers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "nsp/backend.h"

namespace nsp::cpu {

class ArgumentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A letter of a shape. The first tensor that has it gives its value; the others must agree.
struct Dim {
  const char* letter;
  int64_t value = -1;
  const char* from = "";
};

enum class Layout {
  rows,    // stride 1 in the last dimension, outer strides free
  matrix,  // rank 2, stride 1 in the last dimension, rows that do not overlap (what BLAS takes)
  any      // all strides free
};

class Checker {
 public:
  explicit Checker(const char* op) : op_(op) {}
  void tensor(const char* name, const nsp_tensor& t, int32_t dtype, std::initializer_list<Dim*> shape, Layout layout = Layout::rows) const;
  // The dtype of a tensor that may be fp32 or bf16.
  int32_t floating(const char* name, const nsp_tensor& t) const;
  // The same as tensor() for one that may be absent; says whether it is there.
  bool optional(const char* name, const nsp_tensor& t, int32_t dtype, std::initializer_list<Dim*> shape) const;
  void require(bool condition, const std::string& text) const;

 private:
  [[noreturn]] void fail(const char* name, const std::string& text) const;
  const char* op_;
};

}  // namespace nsp::cpu
