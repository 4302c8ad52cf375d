// A trained model in one process, for eval and generate: weights and activations only, no optimizer, no launcher.
#pragma once

#include <memory>

#include "core/app/model_source.hpp"
#include "core/app/world.hpp"
#include "core/train/evaluate.hpp"

namespace nsp {

class Inference {
 public:
  // Opens the newest good checkpoint of run.dir (or run.resume, a step folder) and loads its model.
  explicit Inference(Session& session);
  ~Inference();
  CheckpointReader& checkpoint() { return *reader_; }
  const ModelSpec& spec() const { return model_->spec(); }
  Job& job() { return *job_; }
  World& world() { return world_; }
  Device& device() { return *device_.device; }
  const StoredValues& stored() const { return stored_; }  // configuration of the run
  int64_t context() const { return planned_.plan.context; }

 private:
  World world_;
  std::unique_ptr<CheckpointReader> reader_;
  StoredValues stored_;
  RankDevice device_;
  std::unique_ptr<Transformer> model_;
  Planned planned_;
  std::unique_ptr<Session::PolicySet> policies_;
  std::unique_ptr<Job> job_;
};

}  // namespace nsp
