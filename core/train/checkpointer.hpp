// Saves all declared states of a job through a CheckpointStore (names and layout: docs/checkpoint_format.md); restore.hpp reads
// them back. Every call is collective over all ranks.
#pragma once

#include <string>

#include "core/train/mean_weights.hpp"
#include "core/train/parts.hpp"
#include "core/train/train_state.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

struct SavedCheckpoint {
  bool good = false;
  std::string where;
  int64_t bytes = 0;      // of all shards
  double mean_bytes = 0;  // sent by all ranks for the mean model
};

class Checkpointer {
 public:
  // attributes: what every checkpoint of this run carries (configuration, plan, data). run: short id for shard names.
  Checkpointer(TrainParts& parts, MeanWeights& mean, CheckpointStore& store, std::string run, Attributes attributes, int keep,
               int64_t keep_every);

  // Writes a checkpoint. A failure on any rank (full disk, ...) removes it, is printed, and leaves the earlier ones: good is false.
  SavedCheckpoint save(const TrainState& state, const std::string& data_position);
  static int64_t staging_bytes();

 private:
  void put_all(ShardWriter& writer);
  void put_state(ShardWriter& writer, StateId state, const std::string& prefix, Range range);
  int64_t bytes_to_put() const;
  Range part_of_replica(Range owned) const;  // where states are common, replicas share the writing
  std::vector<PieceRecord> gather_pieces(const std::vector<PieceRecord>& own);
  std::vector<int64_t> by_replica(int64_t value);

  TrainParts& parts_;
  MeanWeights& mean_;
  CheckpointStore& store_;
  std::string run_;
  Attributes attributes_;
  int keep_;
  int64_t keep_every_;
  Buffer staging_;
};

}  // namespace nsp
