#include "core/train/mean_weights.hpp"

namespace nsp {

MeanWeights::MeanWeights(TrainParts& parts, int64_t bucket_elements) : parts_(parts) {
  if (!parts.replicas_differ()) return;
  NSP_REQUIRE(parts.spare >= 0, "a spare state exists where replicas differ");
  mean_ = std::make_unique<WeightedMean>(parts.groups.replicate(), parts.plan.weights(), parts.stream, bucket_elements);
  parts.wait.add(mean_.get());
}

MeanWeights::~MeanWeights() {
  if (mean_) parts_.wait.remove(mean_.get());
}

void MeanWeights::mean(StateId out) {
  const EventPtr ready = record_event(parts_.device, parts_.stream, "weights of the replica");
  for (const Range& range : parts_.owned())
    if (!range.empty())
      mean_->add(parts_.cache.acquire(parts_.master, range, parts_.stream), parts_.cache.acquire(out, range, parts_.stream), ready);
  mean_->finish(parts_.wait);
  for (const Range& range : parts_.owned()) {
    if (range.empty()) continue;
    parts_.cache.release(parts_.master, range, out == parts_.master);
    parts_.cache.release(out, range, true);
  }
}

void MeanWeights::copy_owned(StateId from, StateId to) {
  const Ops ops(parts_.stream);
  for (const Range& range : parts_.owned()) {
    if (range.empty()) continue;
    ops.copy(parts_.cache.acquire(to, range, parts_.stream), parts_.cache.acquire(from, range, parts_.stream));
    parts_.cache.release(from, range, false);
    parts_.cache.release(to, range, true);
  }
}

void MeanWeights::install() {
  if (!mean_) return;
  copy_owned(parts_.master, parts_.spare);
  mean(parts_.master);
  gather_weights(parts_);
}

void MeanWeights::restore() {
  if (!mean_) return;
  copy_owned(parts_.spare, parts_.master);
  gather_weights(parts_);
}

void MeanWeights::compute_into_spare() {
  if (mean_) mean(parts_.spare);
}

}  // namespace nsp
