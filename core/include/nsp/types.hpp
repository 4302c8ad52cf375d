// Values that every interface speaks: dtype, tensor view, range, declared state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "nsp/abi.h"
#include "nsp/error.hpp"

namespace nsp {

enum class DType : int32_t { f32 = NSP_F32, bf16 = NSP_BF16, f64 = NSP_F64, i32 = NSP_I32, u8 = NSP_U8, i64 = NSP_I64 };

inline std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}
inline const char* name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::f64:
      return "fp64";
    case DType::i32:
      return "int32";
    case DType::u8:
      return "uint8";
    case DType::i64:
      return "int64";
  }
  return "?";
}

// A non-owning view: pointer (possibly a device address), dtype, up to five sizes and strides in elements.
// A value; copying it copies no data. A default one is "absent".
class TensorView {
 public:
  TensorView() : t_{} {}
  // Dense row-major view.
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> sizes) : t_{} {
    NSP_REQUIRE(sizes.size() <= NSP_MAX_RANK, "a tensor has at most five dimensions");
    t_.data = data;
    t_.dtype = static_cast<int32_t>(dtype);
    t_.rank = static_cast<int32_t>(sizes.size());
    int i = 0;
    for (int64_t s : sizes) t_.size[i++] = s;
    int64_t stride = 1;
    for (int d = t_.rank - 1; d >= 0; --d) {
      t_.stride[d] = stride;
      stride *= t_.size[d];
    }
  }
  // View with free strides (in elements).
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides)
      : TensorView(data, dtype, sizes) {
    NSP_REQUIRE(sizes.size() == strides.size(), "as many strides as sizes");
    int i = 0;
    for (int64_t s : strides) t_.stride[i++] = s;
  }

  const nsp_tensor& c() const noexcept { return t_; }
  void* data() const noexcept { return t_.data; }
  DType dtype() const noexcept { return static_cast<DType>(t_.dtype); }
  int rank() const noexcept { return t_.rank; }
  int64_t size(int d) const noexcept { return t_.size[d]; }
  int64_t stride(int d) const noexcept { return t_.stride[d]; }
  bool present() const noexcept { return t_.rank > 0; }
  int64_t elements() const noexcept {
    int64_t n = t_.rank > 0 ? 1 : 0;
    for (int d = 0; d < t_.rank; ++d) n *= t_.size[d];
    return n;
  }
  int64_t bytes() const noexcept { return elements() * static_cast<int64_t>(size_of(dtype())); }
  bool dense() const noexcept {
    int64_t stride = 1;
    for (int d = t_.rank - 1; d >= 0; --d) {
      if (t_.size[d] != 1 && t_.stride[d] != stride) return false;
      stride *= t_.size[d];
    }
    return true;
  }
  // The dense elements [lo, hi) as a 1-D view. REQUIRES dense().
  TensorView slice(int64_t lo, int64_t hi) const {
    NSP_ASSERT(dense() && lo >= 0 && lo <= hi && hi <= elements(), "slice within a dense tensor");
    return TensorView(static_cast<char*>(t_.data) + lo * static_cast<int64_t>(size_of(dtype())), dtype(), {hi - lo});
  }
  // The same dense data under other sizes. REQUIRES dense() and equal element count.
  TensorView reshape(std::initializer_list<int64_t> sizes) const {
    TensorView v(t_.data, dtype(), sizes);
    NSP_REQUIRE(dense() && v.elements() == elements(), "reshape keeps the number of elements of a dense tensor");
    return v;
  }
  // Rows [lo, hi) of the first dimension, strides kept.
  TensorView rows(int64_t lo, int64_t hi) const {
    NSP_ASSERT(t_.rank >= 1 && lo >= 0 && lo <= hi && hi <= t_.size[0], "rows within the tensor");
    TensorView v = *this;
    v.t_.data = static_cast<char*>(t_.data) + lo * t_.stride[0] * static_cast<int64_t>(size_of(dtype()));
    v.t_.size[0] = hi - lo;
    return v;
  }

 private:
  nsp_tensor t_;
};

// A part of one segment, in logical element offsets [lo, hi) of the whole, unsharded, true-shaped segment. May be empty.
struct Range {
  int segment = 0;
  int64_t lo = 0, hi = 0;
  int64_t size() const noexcept { return hi - lo; }
  bool empty() const noexcept { return hi <= lo; }
  friend bool operator==(const Range&, const Range&) = default;
};

// What a parameter is for; decides weight decay and initial values.
enum class Role { matrix, embedding, norm, bias };

// How replicas' copies of a state are merged when their number changes: they are equal; mean with the replicas' shares; zero again.
enum class Merge { identical, weighted_mean, reset };
// Which part of a segment a rank holds: all of it, or the range that it owns inside its replica.
enum class Extent { full, owned };
// Whether replicas may hold different values.
enum class Scope { common, per_replica };

// A state that an optimizer or a sync policy keeps. Declared before the plan; core allocates, reports, caches,
// checkpoints and reshards it without knowing what it means. Zero at the start of a run.
struct StateDecl {
  std::string kind;  // "weights", "adamw.m", "desloc.landing": <plug-in>.<name>; unique
  DType dtype = DType::f32;
  Extent extent = Extent::owned;
  Scope scope = Scope::common;  // what the optimizer declares; core widens it to per_replica if the sync policy says replicas differ
  int moment = 0;               // 1 or 2 for a first or second moment of the gradient; else 0
  Merge merge = Merge::identical;
  bool checkpointed = true;  // false: zero again after a resume; for what nobody needs after finish_step
};

}  // namespace nsp
