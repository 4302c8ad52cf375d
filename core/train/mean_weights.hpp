// The weighted mean of the replicas' weights, for evaluation, samples and checkpoints. It is never trained on: install() keeps
// each replica's own weights and restore() puts them back bit for bit. Where replicas do not differ everything is a no-op.
#pragma once

#include <memory>

#include "core/train/parts.hpp"
#include "nsp/weighted_mean.hpp"

namespace nsp {

class MeanWeights {
 public:
  MeanWeights(TrainParts& parts, int64_t bucket_elements);
  ~MeanWeights();
  // REQUIRES that the sync policy is at rest. Collective over all ranks.
  void install();             // master and weights = mean, everywhere
  void restore();             // weights = each replica's own
  void compute_into_spare();  // spare state = owned ranges of the mean; weights stay
  int64_t staging_bytes() const noexcept { return mean_ ? mean_->staging_bytes() : 0; }

 private:
  void mean(StateId out);
  void copy_owned(StateId from, StateId to);
  TrainParts& parts_;
  std::unique_ptr<WeightedMean> mean_;
};

}  // namespace nsp
