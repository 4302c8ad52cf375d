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

namespace {

// What all ranks want, asked again and again. An answer is read when the next question is put: it has travelled meanwhile, so that
// nobody waits for it unless ranks are more than a batch apart.
class Vote {
 public:
  explicit Vote(TrainParts& parts) : parts_(parts) {}
  // Whether a rank said yes to the question before this one. Collective.
  bool ask(bool own) {
    if (settle()) return true;
    yes_[0] = own ? 1 : 0;
    work_ = parts_.groups.control().all_reduce(TensorView(yes_, DType::f64, {1}), {});
    return false;
  }
  // The answer to the last question.
  bool settle() {
    if (!work_) return false;
    parts_.wait.wait(work_);
    work_.reset();
    return yes_[0] > 0;
  }

 private:
  TrainParts& parts_;
  double yes_[1] = {0};
  WorkPtr work_;
};

}  // namespace

EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t sequences, DeviceScalars& loss,
                    const std::function<bool()>& stop) {
  const JobPlan& plan = parts.plan;
  const int64_t all = std::min(sequences, source.samples());
  const int64_t first = all * parts.replica() / plan.replicas, last = all * (parts.replica() + 1) / plan.replicas;
  const int64_t largest_share = (all + plan.replicas - 1) / plan.replicas;  // shares differ, and all ranks vote equally often
  const int64_t rounds = (largest_share + plan.micro_batch - 1) / plan.micro_batch;
  loss.zero();
  int64_t counted = 0;
  Vote vote(parts);
  std::vector<int64_t> samples;
  for (int64_t round = 0; round < rounds; ++round) {
    if (stop && vote.ask(stop())) return {std::nan(""), 0, true};
    const int64_t s = first + round * plan.micro_batch;
    if (s >= last) continue;
    samples.clear();
    for (int64_t i = s; i < std::min(s + plan.micro_batch, last); ++i) samples.push_back(i);
    const LoadedBatch loaded = loader.load(source, samples);
    const Ops ops(parts.stream);
    const ModelContext context{ops, parts.workspace, parts.strategy, parts.wait, loaded.shape, loaded.batch, false};
    parts.model.forward(context, parts.params, loss.at(0));
    counted += loaded.counted;
  }
  vote.settle();  // whoever wants to stop by now gets the loss, and asks again after the step
  double sums[2] = {loss.read()[0], static_cast<double>(counted)};
  all_reduce_now(parts.groups.world(), parts.wait, sums);
  return {sums[1] > 0 ? sums[0] / sums[1] : std::nan(""), static_cast<int64_t>(sums[1]), false};
}

}  // namespace nsp
