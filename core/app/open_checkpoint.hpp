// Which checkpoint a path means, and the newest good one where it names a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nsp/checkpoint_store.hpp"
#include "nsp/log.hpp"

namespace nsp {

class World;

struct CheckpointPath {
  std::string folder;  // that holds step folders
  int64_t step = -1;   // -1: the newest good one
};
// path: a run directory or one of its step folders. Error(usage) if it is named like a step folder and is none.
CheckpointPath checkpoint_path(const std::string& path);

// What of a checkpoint must have its checksums before it is taken: all of it to resume, the weights to use the model.
enum class Needed { everything, model };

struct PassedOver {
  int64_t step = 0;
  std::string why;
};
std::string text_of(CheckpointStore& store, const PassedOver& bad);

// The first of `steps` that is good, opened; nullptr if none is. passed_over: those before it.
// world: collective over its ranks, and steps are the same on all; each reads a share of the checkpoint, in slices of seconds, so that
// none waits longer for the others however large it is (comm.timeout). nullptr: this process alone.
std::unique_ptr<CheckpointReader> first_good(World* world, CheckpointStore& store, const std::vector<int64_t>& steps, Needed needed,
                                             std::vector<PassedOver>& passed_over);
// The steps of a store, the newest first.
std::vector<int64_t> newest_first(CheckpointStore& store);

// For the model in it: the checkpoint of a step folder, or the newest good one of a run directory; what is passed over is a warning.
// Error(input) if there is none. world: as above; rank 0 chooses the steps to look at.
std::unique_ptr<CheckpointReader> open_checkpoint(World* world, const std::string& path, Log& log);

}  // namespace nsp
