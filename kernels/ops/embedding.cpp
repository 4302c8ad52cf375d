// Table look-up and its gradient.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "ops/element.hpp"
#include "ops/kernels.hpp"
#include "ops/kokkos_compat.hpp"
#include "ops/view.hpp"

namespace nsp::cpu::kernels {

namespace {

// Indices lie in device memory, so the host cannot check them at the call; a wrong one would read or write elsewhere.
void check_indices(const char* op, const char* name, const nsp_tensor& indices, int64_t limit) {
  const auto* index = static_cast<const int32_t*>(indices.data);
  for (int64_t n = 0; n < indices.size[0]; ++n) {
    if (index[n] < 0 || index[n] >= limit) {
      throw std::out_of_range(std::string(op) + ": " + name + "[" + std::to_string(n) + "] is " + std::to_string(index[n]) +
                              ", outside 0 to " + std::to_string(limit - 1));
    }
  }
}

// table[index[n],:] += rows[n,:], in fp32, in the order of n. Each work item owns a few columns and goes over all n.
template <class T>
void scatter_add(const nsp_tensor& table_tensor, const nsp_tensor& index_tensor, const nsp_tensor& row_tensor) {
  constexpr int64_t kColumns = 64;
  const Matrix<float> table(table_tensor);
  const Matrix<const T> rows(row_tensor);
  const auto* index = static_cast<const int32_t*>(index_tensor.data);
  parallel_items("nsp embedding backward", (rows.columns + kColumns - 1) / kColumns, rows.rows * kColumns, [=](int64_t part) {
    const int64_t lo = part * kColumns, hi = std::min(rows.columns, lo + kColumns);
    for (int64_t n = 0; n < rows.rows; ++n) {
      float* target = table.row(index[n]);
      const T* source = rows.row(n);
#pragma omp simd
      for (int64_t c = lo; c < hi; ++c) target[c] += widen(source[c]);
    }
  });
}

template <class T>
void look_up(const nsp_embedding_forward_args& a) {
  const Matrix<T> out(a.out);
  const Matrix<const T> table(a.table);
  const auto* tokens = static_cast<const int32_t*>(a.tokens.data);
  if (!present(a.positions)) {
    parallel_items("nsp embedding", out.rows, out.columns, [=](int64_t n) { std::copy_n(table.row(tokens[n]), out.columns, out.row(n)); });
    return;
  }
  const Matrix<const T> position_table(a.position_table);
  const auto* positions = static_cast<const int32_t*>(a.positions.data);
  parallel_items("nsp embedding", out.rows, out.columns, [=](int64_t n) {
    const T *token_row = table.row(tokens[n]), *position_row = position_table.row(positions[n]);
    T* result = out.row(n);
#pragma omp simd
    for (int64_t c = 0; c < out.columns; ++c) result[c] = narrow<T>(widen(token_row[c]) + widen(position_row[c]));
  });
}

}  // namespace

void embedding_forward(Context&, const nsp_embedding_forward_args& a) {
  check_indices("embedding_forward", "tokens", a.tokens, a.table.size[0]);
  if (present(a.positions)) check_indices("embedding_forward", "positions", a.positions, a.position_table.size[0]);
  with_element(a.out.dtype, [&](auto element) { look_up<decltype(element)>(a); });
}

void embedding_backward(Context&, const nsp_embedding_backward_args& a) {
  if (present(a.dtable)) {
    check_indices("embedding_backward", "tokens", a.tokens, a.dtable.size[0]);
    with_element(a.dout.dtype, [&](auto element) { scatter_add<decltype(element)>(a.dtable, a.tokens, a.dout); });
  }
  if (present(a.dposition_table)) {
    check_indices("embedding_backward", "positions", a.positions, a.dposition_table.size[0]);
    with_element(a.dout.dtype, [&](auto element) { scatter_add<decltype(element)>(a.dposition_table, a.positions, a.dout); });
  }
}

}  // namespace nsp::cpu::kernels
