// One rank's shard of a checkpoint: an HDF5 file of 1-D data sets, one per piece.
#pragma once

#include "io/h5_output.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

class Hdf5Shard : public ShardWriter {
 public:
  // folder: the step's, existing; the shard is <folder>/<shard_name>.tmp until the checkpoint is committed.
  Hdf5Shard(std::string folder, int64_t step, int rank, const std::string& run, int64_t bytes);
  ~Hdf5Shard() override;
  void put(const std::string& name, DType dtype, const std::vector<int64_t>& shape, int64_t offset, const void* data,
           int64_t count) override;
  std::vector<PieceRecord> finish() override;

 private:
  void write_piece(const PieceRecord& piece, const void* data);

  std::string folder_;
  int rank_;
  h5::OutputFile file_;
  std::vector<PieceRecord> pieces_;
  bool any_data_ = false, finished_ = false;
};

}  // namespace nsp
