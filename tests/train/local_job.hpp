// A whole training job in one process: ranks are threads over the local communicator, on the CPU backend or on fake devices
// whose memory the host cannot touch. Everything else is what nsp_app runs: plan, job, trainer, checkpoints, policies from
// their modules.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/planner.hpp"
#include "core/train/restore.hpp"
#include "core/train/trainer.hpp"
#include "io/memory_store.hpp"
#include "nsp/data_source.hpp"

namespace nsp::test {

struct LocalSettings {
  int ranks = 1;
  int threads = 1;  // of the process; the first job decides
  std::string sync = "ddp", parallel = "dp", optimizer = "adamw";
  std::map<std::string, std::string> options;  // "desloc.kx" -> "4"
  ModelSpec spec;
  int64_t global_batch = 4, micro_batch = 0, context = 64;
  DType dtype = DType::f32;
  TrainSettings train;
  bool documents = false;
  bool shuffle = false;
  bool fake_device = false;
  int64_t bucket_elements = 1 << 20;
  uint64_t seed = 1;
  // Initial weights; empty: from the seed.
  std::function<void(const Param&, int64_t offset, int64_t count, float* out)> weights;
  std::function<std::unique_ptr<DataSource>()> train_data, val_data;  // one object per rank; val_data may be empty
  CheckpointStore* store = nullptr;                                   // shared by all ranks; nullptr: a MemoryStore of the run's own
  bool resume = false;                                                // from the newest checkpoint of store
  std::vector<StateDecl> extra_states;                                // declared besides those of the policies; nothing changes them
  // Called on every rank after the job is built and filled, and before the loop.
  std::function<void(TrainParts&)> before;
  // Called on every rank when a step's backward is done, before the optimizer, with the job's parts.
  std::function<void(TrainParts&, int64_t t)> on_step;
};

struct LocalResult {
  std::vector<std::vector<double>> losses, norms;   // [step][replica], of each replica's own tokens
  std::vector<std::string> metrics;                 // lines of metrics.jsonl
  std::map<std::string, std::vector<float>> model;  // /model/<name> of the last checkpoint
  std::vector<uint64_t> weight_hashes;              // of each rank at the end
  std::vector<Breakdown> times;                     // of each rank
  Planned planned;
  std::string report;  // of the plan
  Restored restored;   // of a resumed run, as rank 0 saw it
};

// Each rank of a job shared by `degree` ranks: that many times the ranks, and autosp between them. 1 changes nothing.
LocalSettings with_autosp(LocalSettings settings, int degree);

// Throws what a rank threw (the first one's). REQUIRES NSP_PLUGIN_PATH with the backend and the policies' modules.
LocalResult run_local(const LocalSettings& settings);

// The value of a key in a line of metrics.jsonl, e.g. "loss"; NaN if it is absent or null.
double json_number(const std::string& line, const std::string& key);

}  // namespace nsp::test
