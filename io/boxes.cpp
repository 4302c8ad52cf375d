#include "io/boxes.hpp"

#include <algorithm>

namespace nsp {

std::vector<Box> boxes_of(const std::vector<int64_t>& shape, int64_t offset, int64_t count) {
  const std::size_t dims = shape.size();
  std::vector<int64_t> inner(dims, 1);  // elements of one step along a dimension
  for (std::size_t d = dims; d-- > 1;) inner[d - 1] = inner[d] * shape[d];
  std::vector<Box> boxes;
  for (int64_t at = offset, end = offset + count; at < end;) {
    std::size_t d = 0;  // the outermost dimension that can be walked from here without leaving the run
    while (at % inner[d] != 0 || end - at < inner[d]) ++d;
    Box box{std::vector<int64_t>(dims), std::vector<int64_t>(dims, 1), 0};
    for (std::size_t k = 0; k < dims; ++k) box.start[k] = at / inner[k] % shape[k];
    box.count[d] = std::min(shape[d] - box.start[d], (end - at) / inner[d]);
    std::copy(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, shape.end(), box.count.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    box.elements = box.count[d] * inner[d];
    at += box.elements;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace nsp
