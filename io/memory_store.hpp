// The checkpoint store in memory, for tests: the same contract as Hdf5Store, with faults on request, so that a full disk, a torn
// manifest and a damaged piece are plain unit tests.
// Thread: unlike other stores it may be shared by threads that act as ranks (communicator `local`); a reader belongs to one.
#pragma once

#include <mutex>

#include "nsp/checkpoint_store.hpp"

namespace nsp {

class MemoryStore : public CheckpointStore {
 public:
  enum class Operation { put, finish, commit };

  MemoryStore();
  ~MemoryStore() override;

  std::unique_ptr<ShardWriter> begin(int64_t step, int rank, const std::string& run, int64_t bytes) override;
  void commit(int64_t step, const std::string& run, const Attributes& attributes, const std::vector<PieceRecord>& pieces) override;
  void rollback(int64_t step) noexcept override;
  std::vector<int64_t> list() override;
  std::unique_ptr<CheckpointReader> open(int64_t step) override;
  void prune(int keep, int64_t keep_every) override;
  std::string where(int64_t step) const override;

  // Faults. From now on the nth call of the operation (1 = the next one) throws Error(io), once.
  void fail(Operation operation, int nth);
  // begin() finds this much room; without a call there is no limit.
  void set_free_bytes(int64_t bytes);
  // Damage to a committed checkpoint; Error(internal) if there is no such piece or step. offset: of the piece in its tensor.
  void corrupt_piece(int64_t step, const std::string& name, int64_t offset);  // flips one bit
  void drop_piece(int64_t step, const std::string& name, int64_t offset);     // its shard is lost
  void tear_manifest(int64_t step);                                           // open() will fail
  // Pieces of shards that no commit has taken over, over all steps: what a failed transaction has left.
  std::size_t uncommitted_pieces() const;

 private:
  struct State;
  class Writer;
  class Reader;
  // Shared with writers and readers, which may outlive the store in a test that unwinds.
  std::shared_ptr<State> state_;
};

}  // namespace nsp
