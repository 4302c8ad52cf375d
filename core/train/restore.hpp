// What a job takes over from a checkpoint of whatever layout: another number of ranks or replicas, another degree, other
// plug-ins. What happens to a state is decided by its declaration (scope and merge rule in nsp/types.hpp), never by its name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/train/json_line.hpp"
#include "core/train/parts.hpp"
#include "core/train/train_state.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

// Where the values of a state came from.
enum class StateSource {
  own,            // each replica's own, bit for bit
  common,         // the checkpoint has one for all replicas
  first_replica,  // of replicas that differed, for a state that is declared identical
  mean,           // of replicas that differed, weighted by their shares of the batch
  reset,          // replicas differed, and their merge is zero
  absent          // the checkpoint has none: as in a new run
};

struct RestoredState {
  std::string kind;
  StateSource source = StateSource::absent;
};

struct Restored {
  TrainState state;  // of this rank's replica
  int64_t replicas_before = 1, replicas_now = 1;
  bool merged = false;                // replicas that differed became one
  bool optimizer_restarted = false;   // none of its states had values to go on with, so its count of updates starts again
  std::vector<RestoredState> states;  // in the order of declaration
  std::vector<std::string> dropped;   // kinds that the checkpoint has and nobody declares now
};

// Fills all states of a job; those that are absent keep their zeros. Collective over all ranks, and an error of one is an error
// of all. Error(input): the checkpoint has no weights of this model, or cannot be read.
Restored restore_states(TrainParts& parts, CheckpointReader& reader);

// For people, a line for each state; and the line of metrics.jsonl.
std::vector<std::string> restored_lines(const Restored& restored);
JsonLine resume_record(const Restored& restored);

// Fills the owned ranges of the fp32 weights, piece by piece, and brings them to every rank of the replica: collective there.
// values(param, offset, count, out) are elements of that tensor. In a job that only infers, the weights themselves are filled.
using WeightSource = std::function<void(const Param& param, int64_t offset, int64_t count, float* out)>;
void set_weights(TrainParts& parts, const WeightSource& values);

// The weights of a checkpoint alone, /model/<name>, for evaluation and generation of any layout.
void restore_model(TrainParts& parts, CheckpointReader& reader);

// A device range, fp32 or bf16, filled from host values in pieces through pinned staging; values(offset, count, out) gives the pieces.
void upload(Device& device, Stream& stream, HostWait& wait, Buffer& staging, TensorView view,
            const std::function<void(int64_t offset, int64_t count, float* out)>& values);

}  // namespace nsp
