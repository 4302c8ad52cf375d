// The sizes of the model and where its first weights come from: the keys of [model] and the file that model.init names.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/config/config.hpp"
#include "core/model/spec.hpp"
#include "core/train/checkpointer.hpp"
#include "core/train/job.hpp"
#include "core/train/restore.hpp"
#include "io/llmc_file.hpp"
#include "nsp/checkpoint_store.hpp"
#include "nsp/log.hpp"

namespace nsp {

class World;

struct ModelSource {
  ModelSpec spec;
  std::optional<LlmcModel> llmc;
  std::unique_ptr<CheckpointReader> checkpoint;
  // First weights: from the file, or random from the seed.
  void fill(Job& job, uint64_t seed) const;
};

// Error(usage): what was given disagrees with the file or the family, or sizes that cannot be. Error(input): the file cannot be used.
// resumed: weights come from a checkpoint of this run anyway, so the file is not opened and the sizes are the stored ones.
// world: collective over its ranks, which look for a good checkpoint together (open_checkpoint); nullptr: this process alone.
ModelSource model_source(World* world, const Config& config, const std::optional<ModelSpec>& resumed, Log& log);

// A spec as one line of "key=value", for the checkpoint; and back, also from lines of earlier versions, which have fewer keys.
std::string spec_text(const ModelSpec& spec);
ModelSpec parse_spec(const std::string& text);

}  // namespace nsp
