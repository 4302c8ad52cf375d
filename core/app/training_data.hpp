// The data of a run, opened as the keys of [data] say.
#pragma once

#include <memory>

#include "core/app/run_directory.hpp"
#include "core/data/token_source.hpp"
#include "core/model/spec.hpp"

namespace nsp {

struct TrainingData {
  std::unique_ptr<TokenSource> train, validation;  // validation may be empty
  bool documents = true;                           // attention stops at document borders
};

// Collective: rank 0 prepares what `auto` needs. context: tokens of a training sequence. verify: rank 0 reads every shard whole and
// compares its checksum first.
// Error(usage): the data's vocabulary is larger than the model's. Error(input): the data cannot be used.
TrainingData open_training_data(Session& session, World& world, const RunDirectory& directory, const ModelSpec& spec, int64_t context,
                                bool verify);

}  // namespace nsp
