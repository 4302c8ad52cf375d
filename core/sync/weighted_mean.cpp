#include "nsp/weighted_mean.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nsp {
namespace {

// Staging must hold R parts of the largest size, so a bucket is the largest multiple of R elements that fits: then near-equal
// parts never need more than the bucket_elements that the caller planned for.
int64_t staging_elements(int replicas, int64_t bucket_elements) {
  return replicas > 1 ? bucket_elements : 0;
}

int64_t cut(int64_t elements, int parts, int i) {
  return elements * i / parts;
}

std::vector<int64_t> part_sizes(int64_t elements, int parts) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < parts; ++i) sizes.push_back(cut(elements, parts, i + 1) - cut(elements, parts, i));
  return sizes;
}

}  // namespace

// One add(). Its bucket is [lo, lo + size); work is the collective that is under way for it.
struct WeightedMean::Task {
  TensorView in, out;
  EventPtr after;
  int64_t lo = 0, size = 0;
  bool gathering = false;
  WorkPtr work;
};

WeightedMean::WeightedMean(Communicator& replicate, std::vector<double> weights, Stream& stream, int64_t bucket_elements)
    : replicate_(replicate),
      weights_(std::move(weights)),
      stream_(stream),
      bucket_elements_(bucket_elements),
      staging_(stream.device(), staging_elements(replicate.size(), bucket_elements) * static_cast<int64_t>(sizeof(float)),
               MemoryKind::device, "staging of weighted means") {
  NSP_REQUIRE(weights_.size() == static_cast<std::size_t>(replicate.size()), "a weighted mean has one weight per replica");
  NSP_REQUIRE(bucket_elements >= replicate.size(), "a bucket has at least one element per replica");
  double sum = 0.0;
  for (double weight : weights_) sum += weight;
  NSP_REQUIRE(std::abs(sum - 1.0) < 1e-6, "the weights of a mean sum to 1");
}

WeightedMean::~WeightedMean() = default;

void WeightedMean::add(TensorView in, TensorView out, EventPtr after) {
  NSP_REQUIRE(in.rank() == 1 && out.rank() == 1 && in.dense() && out.dense() && in.size(0) == out.size(0) && in.dtype() == DType::f32 &&
                  out.dtype() == DType::f32,
              "the views of a weighted mean are dense, fp32 and of equal length");
  if (in.elements() == 0) return;
  if (replicate_.size() == 1) {
    if (in.data() == out.data()) return;
    if (after) stream_.wait(*after);
    Ops(stream_).copy(out, in);
    return;
  }
  auto task = std::make_unique<Task>();
  task->in = in;
  task->out = out;
  task->after = std::move(after);
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) start_bucket(*tasks_.front());
}

bool WeightedMean::progress() {
  while (!tasks_.empty()) {
    Task& task = *tasks_.front();
    if (!task.work->done()) return true;
    if (!task.gathering) {
      combine(task);
      continue;
    }
    task.lo += task.size;
    if (task.lo < task.in.size(0)) {
      start_bucket(task);
      continue;
    }
    tasks_.pop_front();
    if (!tasks_.empty()) start_bucket(*tasks_.front());
  }
  return false;
}

void WeightedMean::finish(HostWait& wait) {
  struct UntilIdle final : Work {
    explicit UntilIdle(const WeightedMean& m) : mean(m) {}
    bool done() override { return mean.idle(); }
    const WeightedMean& mean;
  } all(*this);
  wait.wait(all);
}

// Staging is free here: the bucket before ended with a gather that started behind its combining ops.
void WeightedMean::start_bucket(Task& task) {
  const int replicas = replicate_.size();
  task.size = std::min(task.in.size(0) - task.lo, bucket_elements_ / replicas * replicas);
  task.gathering = false;
  const std::vector<int64_t> sizes = part_sizes(task.size, replicas);
  const int64_t own = sizes[static_cast<std::size_t>(replicate_.rank())];
  const TensorView received(staging_.data(), DType::f32, {own * replicas});
  task.work = replicate_.all_to_all(task.in.slice(task.lo, task.lo + task.size), sizes, received,
                                    std::vector<int64_t>(static_cast<std::size_t>(replicas), own), After{task.after, nullptr});
}

void WeightedMean::combine(Task& task) {
  const int replicas = replicate_.size();
  const int64_t lo = task.lo + cut(task.size, replicas, replicate_.rank());
  const int64_t hi = task.lo + cut(task.size, replicas, replicate_.rank() + 1);
  const TensorView mean = task.out.slice(lo, hi);
  if (lo < hi) {
    const Ops ops(stream_);
    const TensorView received(staging_.data(), DType::f32, {(hi - lo) * replicas});
    const TensorView first = received.slice(0, hi - lo);
    ops.copy(mean, first);
    for (int m = 1; m < replicas; ++m) {
      const TensorView other = received.slice(m * (hi - lo), (m + 1) * (hi - lo));
      ops.lerp(mean, mean, other, first, static_cast<float>(weights_[static_cast<std::size_t>(m)]));
    }
  }
  // Shared with the collective, which queries it until it starts.
  auto combined = std::make_shared<Event>(stream_.device(), "weighted mean");
  combined->record(stream_);
  task.gathering = true;
  task.work = replicate_.all_gather(mean, part_sizes(task.size, replicas), task.out.slice(task.lo, task.lo + task.size),
                                    After{std::move(combined), nullptr});
}

}  // namespace nsp
