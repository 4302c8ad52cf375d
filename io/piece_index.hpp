// The pieces of one checkpoint, ordered by tensor: which piece holds which elements, and whether they fit together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nsp/checkpoint_store.hpp"

namespace nsp {

// Elements of a tensor of this shape; Error(internal) if it is no shape (no dimension, too many, negative, overflow).
int64_t elements_of(const std::vector<int64_t>& shape);
// Error(internal) unless name, shape and the piece [offset, offset + count) may be stored: "/a/b" without empty, "." or ".."
// parts, printable ASCII, no '%' (HDF5 expands it in names of virtual sources), not below /nsp (the store's own).
void require_storable(const std::string& name, const std::vector<int64_t>& shape, int64_t offset, int64_t count);

struct TensorPieces {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  std::vector<std::size_t> pieces;  // indices into PieceIndex::pieces(), by offset, empty pieces left out
};

class PieceIndex {
 public:
  // Throws Error(kind) that starts with `where` if pieces of a tensor disagree about it, leave its bounds or overlap.
  // kind: inconsistent when ranks wrote so, input when a file says so. Empty pieces of non-empty tensors are dropped.
  PieceIndex(std::vector<PieceRecord> pieces, ErrorKind kind, const std::string& where);

  const std::vector<PieceRecord>& pieces() const noexcept { return pieces_; }
  const std::map<std::string, TensorPieces>& tensors() const noexcept { return tensors_; }
  // The empty string, or the first tensor with a gap and where.
  std::string first_gap() const;

 private:
  std::vector<PieceRecord> pieces_;
  std::map<std::string, TensorPieces> tensors_;
};

}  // namespace nsp
