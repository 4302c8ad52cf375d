// Checkpoints as HDF5 files on a file system that all ranks see: docs/checkpoint_format.md.
// Thread: calls into HDF5 are serialised over the process, so ranks that are threads may each use a store of their own.
#pragma once

#include "nsp/checkpoint_store.hpp"

namespace nsp {

class Hdf5Store : public CheckpointStore {
 public:
  // RUN/checkpoints; created by the first begin().
  explicit Hdf5Store(std::string checkpoints_dir) : dir_(std::move(checkpoints_dir)) {}

  // run: letters, digits, '.', '-' and '_' only.
  std::unique_ptr<ShardWriter> begin(int64_t step, int rank, const std::string& run, int64_t bytes) override;
  // An earlier checkpoint of the same step is replaced, here and not before.
  void commit(int64_t step, const std::string& run, const Attributes& attributes, const std::vector<PieceRecord>& pieces) override;
  void rollback(int64_t step) noexcept override;
  std::vector<int64_t> list() override;
  std::unique_ptr<CheckpointReader> open(int64_t step) override;
  // The newest readable checkpoint is always kept; one whose manifest is torn does not count as kept. Checkpoints beyond the one
  // that this store committed last are removed: the run went on from an earlier one, and their course is not its own any more.
  void prune(int keep, int64_t keep_every) override;
  std::string where(int64_t step) const override;

 private:
  std::string dir_;
  int64_t last_commit_ = -1;
};

}  // namespace nsp
