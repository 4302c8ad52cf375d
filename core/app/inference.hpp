// A trained model on the ranks of a world, for eval and generate: weights and activations only, no optimizer. Every rank is a
// replica; the memory is planned and checked before anything is allocated.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/app/model_source.hpp"
#include "core/app/world.hpp"
#include "core/train/evaluate.hpp"

namespace nsp {

struct InferenceNeeds {
  int64_t tokens_at_once = 1;  // of a micro-step, about; at least one sequence
  // Memory that the verb itself will allocate for this model and plan.
  std::function<std::vector<MemoryLine>(const ModelSpec& spec, const JobPlan& plan)> more;
};

class Inference {
 public:
  // Collective. Opens the newest good checkpoint of run.dir (or run.resume, a step folder), as rank 0 sees it, and loads its model.
  // Error(input) if there is none, Error(does_not_fit) if memory is too small.
  Inference(Session& session, World& world, const InferenceNeeds& needs);
  ~Inference();
  CheckpointReader& checkpoint() { return *reader_; }
  const ModelSpec& spec() const { return model_->spec(); }
  Job& job() { return *job_; }
  World& world() { return world_; }
  Device& device() { return *device_.device; }
  const StoredValues& stored() const { return stored_; }  // configuration of the run
  int64_t context() const { return planned_.plan.context; }
  const std::string& run_directory() const { return run_directory_; }  // that the checkpoint belongs to
  // A key's value as given now, else that of the run, else the default.
  std::string value(const std::string& section, const std::string& name) const;

 private:
  void plan(const InferenceNeeds& needs);
  Session& session_;
  World& world_;
  std::string run_directory_;
  std::unique_ptr<CheckpointReader> reader_;
  StoredValues stored_;
  RankDevice device_;
  std::unique_ptr<Transformer> model_;
  Planned planned_;
  std::unique_ptr<Session::PolicySet> policies_;
  std::unique_ptr<Job> job_;
};

}  // namespace nsp
