// Which checkpoint a path means, and the newest good one where it names a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nsp/checkpoint_store.hpp"
#include "nsp/log.hpp"

namespace nsp {

struct CheckpointPath {
  std::string folder;  // that holds step folders
  int64_t step = -1;   // -1: the newest good one
};
// path: a run directory or one of its step folders. Error(usage) if it is named like a step folder and is none.
CheckpointPath checkpoint_path(const std::string& path);

// What of a checkpoint must have its checksums before it is taken: all of it to resume, the weights to use the model.
enum class Needed { everything, model };
// Empty, or what is wrong.
std::string damage_of(CheckpointReader& reader, Needed needed);

// The newest checkpoint that is good; nullptr if there is none. passed_over: a line for each newer one that is not.
std::unique_ptr<CheckpointReader> newest_good(CheckpointStore& store, Needed needed, std::vector<std::string>& passed_over);

// For the model in it: the checkpoint of a step folder, or the newest good one of a run directory; what is passed over is a warning.
// Error(input) if there is none.
std::unique_ptr<CheckpointReader> open_checkpoint(const std::string& path, Log& log);

}  // namespace nsp
