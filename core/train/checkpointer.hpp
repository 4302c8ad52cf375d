// Saves and restores all declared states of a job through a CheckpointStore (names and layout: design of checkpoints,
// docs/checkpoint_format.md). Every call is collective over all ranks.
#pragma once

#include <string>

#include "core/train/mean_weights.hpp"
#include "core/train/parts.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

// What a run knows besides its states.
struct TrainState {
  int64_t step = 0;          // finished steps
  int64_t updates = 0;       // updates that this replica's optimizer made; bad steps do not count
  int64_t bad_in_a_row = 0;  // of this replica
};

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
  // Fills all states from an opened checkpoint. Error(input) if it does not hold what this layout needs.
  TrainState restore(CheckpointReader& reader);

  static int64_t staging_bytes();

 private:
  void put_all(ShardWriter& writer);
  void put_state(ShardWriter& writer, StateId state, const std::string& prefix, Range range);
  int64_t bytes_to_put() const;
  Range part_of_replica(Range owned) const;  // where states are common, replicas share the writing
  std::string replica_prefix(const std::string& kind) const;
  std::string agree(const std::string& failure);  // the first rank's failure text, on every rank; empty if none failed
  std::vector<PieceRecord> gather_pieces(const std::vector<PieceRecord>& own);
  std::vector<int64_t> by_replica(int64_t value);
  void get_state(CheckpointReader& reader, StateId state, const std::string& prefix, Range range);

  TrainParts& parts_;
  MeanWeights& mean_;
  CheckpointStore& store_;
  std::string run_;
  Attributes attributes_;
  int keep_;
  int64_t keep_every_;
  Buffer staging_;
};

// The weights of a checkpoint alone, /model/<name>, for evaluation and generation of any layout.
void restore_model(TrainParts& parts, CheckpointReader& reader);

// A device range filled from host values in pieces through pinned staging; values(offset, count, out) gives the pieces.
void upload(Device& device, Stream& stream, HostWait& wait, Buffer& staging, TensorView view,
            const std::function<void(int64_t offset, int64_t count, float* out)>& values);

}  // namespace nsp
