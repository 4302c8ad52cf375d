#include "core/train/evaluate.hpp"

#include <algorithm>
#include <cmath>

namespace nsp {

DeviceScalars::DeviceScalars(Device& device, Stream& stream, HostWait& wait, int count, const std::string& name)
    : stream_(stream),
      wait_(wait),
      device_(device),
      device_values_(device, bytes(count), MemoryKind::device, name),
      host_values_(device, bytes(count), MemoryKind::pinned, name),
      count_(count) {}

TensorView DeviceScalars::at(int i) const {
  return TensorView(static_cast<double*>(device_values_.data()) + i, DType::f64, {1});
}

void DeviceScalars::zero() {
  stream_.fill(device_values_.data(), 0, bytes(count_));
}

const double* DeviceScalars::read() {
  stream_.copy(host_values_.data(), device_values_.data(), bytes(count_));
  wait_.wait(*record_event(device_, stream_, "scalars read"));
  return static_cast<const double*>(host_values_.data());
}

EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t sequences, DeviceScalars& loss) {
  const JobPlan& plan = parts.plan;
  const int64_t all = std::min(sequences, source.samples());
  const int64_t first = all * parts.replica() / plan.replicas, last = all * (parts.replica() + 1) / plan.replicas;
  loss.zero();
  int64_t counted = 0;
  std::vector<int64_t> samples;
  for (int64_t s = first; s < last; s += plan.micro_batch) {
    samples.clear();
    for (int64_t i = s; i < std::min(s + plan.micro_batch, last); ++i) samples.push_back(i);
    const LoadedBatch loaded = loader.load(source, samples);
    const Ops ops(parts.stream);
    const ModelContext context{ops, parts.workspace, parts.strategy, parts.wait, loaded.shape, loaded.batch, false};
    parts.model.forward(context, parts.params, loss.at(0));
    counted += loaded.counted;
  }
  double sums[2] = {loss.read()[0], static_cast<double>(counted)};
  all_reduce_now(parts.groups.world(), parts.wait, sums);
  return {sums[1] > 0 ? sums[0] / sums[1] : std::nan(""), static_cast<int64_t>(sums[1])};
}

}  // namespace nsp
