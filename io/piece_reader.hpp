// What every checkpoint reader does alike: find the pieces of a range, and believe a piece only after its checksum.
// A store adds where the bytes of a piece come from.
#pragma once

#include <vector>

#include "io/piece_index.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

class PieceReader : public CheckpointReader {
 public:
  int64_t step() const override { return step_; }
  const Attributes& attributes() const override { return attributes_; }
  const std::vector<PieceRecord>& pieces() const override { return index_.pieces(); }
  bool has(const std::string& name) const override { return index_.tensors().count(name) > 0; }
  std::vector<int64_t> shape(const std::string& name) const override { return tensor(name).shape; }
  // The first read of a piece reads all of it, even if less is asked for: a checksum covers whole pieces.
  void get(const std::string& name, DType dtype, int64_t offset, int64_t count, void* out) override;
  std::string verify() override;

 protected:
  // where: the checkpoint in messages.
  PieceReader(int64_t step, std::string where, Attributes attributes, PieceIndex index);
  // Elements [lo, lo + count) of a piece into out. Error(input) if they are not there.
  virtual void read(const PieceRecord& piece, int64_t lo, int64_t count, void* out) = 0;
  // The file that holds a piece, for messages.
  virtual std::string file_of(const PieceRecord& piece) const = 0;
  std::string describe(const PieceRecord& piece) const;

 private:
  const TensorPieces& tensor(const std::string& name) const;
  void read_checked(std::size_t i, int64_t lo, int64_t count, char* out);

  int64_t step_;
  std::string where_;
  Attributes attributes_;
  PieceIndex index_;
  std::vector<bool> verified_;  // per piece
};

}  // namespace nsp
