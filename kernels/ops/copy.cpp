// Element by element copy between any two stride patterns.
#include <cstring>

#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu::kernels {

namespace {

// Dimensions of both tensors with those of size 1 dropped and neighbours joined where both allow it.
struct Extents {
  int rank = 0;
  int64_t size[NSP_MAX_RANK], from[NSP_MAX_RANK], to[NSP_MAX_RANK];
};

Extents joined(const nsp_tensor& x, const nsp_tensor& out) {
  Extents e;
  for (int d = 0; d < x.rank; ++d) {
    if (x.size[d] == 1) continue;
    const int last = e.rank - 1;
    if (last >= 0 && e.from[last] == x.stride[d] * x.size[d] && e.to[last] == out.stride[d] * x.size[d]) {
      e.size[last] *= x.size[d];
      e.from[last] = x.stride[d];
      e.to[last] = out.stride[d];
    } else {
      e.size[e.rank] = x.size[d];
      e.from[e.rank] = x.stride[d];
      e.to[e.rank] = out.stride[d];
      ++e.rank;
    }
  }
  return e;
}

template <class T>
void copy_as(const nsp_tensor& x, const nsp_tensor& out) {
  constexpr int64_t kRun = 65536;  // longest stretch of one work item
  Extents e = joined(x, out);
  int64_t run = 1, from = 0, to = 0, items = 1;
  if (e.rank > 0) {
    --e.rank;
    run = e.size[e.rank];
    from = e.from[e.rank];
    to = e.to[e.rank];
  }
  for (int d = 0; d < e.rank; ++d) items *= e.size[d];
  const int64_t pieces = (run + kRun - 1) / kRun;
  const T* source = static_cast<const T*>(x.data);
  T* target = static_cast<T*>(out.data);
  parallel_items("nsp copy", items * pieces, run < kRun ? run : kRun, [=](int64_t item) {
    const int64_t lo = item % pieces * kRun, n = run - lo < kRun ? run - lo : kRun;
    int64_t rest = item / pieces, at = lo * from, into = lo * to;
    for (int d = e.rank - 1; d >= 0; --d) {
      at += rest % e.size[d] * e.from[d];
      into += rest % e.size[d] * e.to[d];
      rest /= e.size[d];
    }
    if (from == 1 && to == 1) {
      std::memcpy(target + into, source + at, static_cast<std::size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) target[into + i * to] = source[at + i * from];
    }
  });
}

}  // namespace

void copy(Context&, const nsp_copy_args& a) {
  for (int d = 0; d < a.x.rank; ++d) {
    if (a.x.size[d] == 0) return;
  }
  switch (a.x.dtype) {
    case NSP_F64:
    case NSP_I64:
      return copy_as<uint64_t>(a.x, a.out);
    case NSP_F32:
    case NSP_I32:
      return copy_as<uint32_t>(a.x, a.out);
    case NSP_BF16:
      return copy_as<uint16_t>(a.x, a.out);
    default:
      return copy_as<uint8_t>(a.x, a.out);
  }
}

}  // namespace nsp::cpu::kernels
