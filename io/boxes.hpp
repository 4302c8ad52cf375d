// A run of elements of a flattened row-major tensor as rectangles, which is what HDF5 can select.
#pragma once

#include <cstdint>
#include <vector>

namespace nsp {

// start and count per dimension; its elements in row-major order are `elements` consecutive ones of the flattened tensor.
struct Box {
  std::vector<int64_t> start, count;
  int64_t elements = 0;
};

// The boxes of [offset, offset + count), in order; at most 2 * dimensions - 1 (a matrix: end of a row, whole rows, start of a row).
// REQUIRES the run to lie in the tensor.
std::vector<Box> boxes_of(const std::vector<int64_t>& shape, int64_t offset, int64_t count);

}  // namespace nsp
