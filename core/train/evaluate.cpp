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

EvalResult evaluate(TrainParts& parts, BatchLoader& loader, DataSource& source, int64_t batches, DeviceScalars& loss) {
  const JobPlan& plan = parts.plan;
  const int64_t all = std::min(batches * plan.global_batch, source.samples());
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

TextGenerator::TextGenerator(TrainParts& parts, BatchLoader& loader)
    : parts_(parts),
      loader_(loader),
      logits_(parts.device, 4 * parts.model.spec().padded_vocab(), MemoryKind::device, "logits"),
      host_logits_(parts.device, 4 * parts.model.spec().padded_vocab(), MemoryKind::pinned, "logits") {}

int32_t TextGenerator::next(const std::vector<int32_t>& window, int64_t length, const Sampling& sampling, uint64_t position) {
  const std::vector<int64_t>& cuts = parts_.plan.parallel.token_cuts;
  const int owner = static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), length - 1) - cuts.begin()) - 1;
  const bool own = owner == parts_.position();
  const LoadedBatch loaded = loader_.load_tokens(window, 1);
  const Ops ops(parts_.stream);
  const ModelContext context{ops, parts_.workspace, parts_.strategy, parts_.wait, loaded.shape, loaded.batch, false};
  const int64_t padded = parts_.model.spec().padded_vocab();
  parts_.model.logits(context, parts_.params, own ? length - 1 - cuts[static_cast<std::size_t>(owner)] : 0,
                      TensorView(logits_.data(), DType::f32, {1, padded}));
  int32_t token = 0;
  parts_.stream.copy(host_logits_.data(), logits_.data(), 4 * padded);
  parts_.wait.wait(*record_event(parts_.device, parts_.stream, "logits read"));
  if (own)
    token = next_token({static_cast<const float*>(host_logits_.data()), static_cast<std::size_t>(parts_.model.spec().vocab)}, sampling,
                       position);
  broadcast_now(parts_.groups.replica_host(), parts_.wait, &token, sizeof token, owner);
  return token;
}

std::vector<int32_t> TextGenerator::generate(const std::vector<int32_t>& prompt, int64_t count, const Sampling& sampling,
                                             const std::function<bool(int32_t)>& after_token) {
  const auto context = static_cast<std::size_t>(parts_.plan.context);
  std::vector<int32_t> window(prompt.size() > context ? prompt.end() - static_cast<std::ptrdiff_t>(context) : prompt.begin(), prompt.end());
  NSP_REQUIRE(!window.empty(), "a prompt has at least one token");
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i) {
    if (window.size() == context)
      window.erase(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(context / 2, 1)));
    const auto length = static_cast<int64_t>(window.size());
    std::vector<int32_t> padded = window;
    padded.resize(context, 0);  // behind the last token: the causal mask keeps it from mattering
    const int32_t token = next(padded, length, sampling, prompt.size() + static_cast<uint64_t>(i));
    window.push_back(token);
    out.push_back(token);
    if (after_token && !after_token(token)) break;
  }
  return out;
}

}  // namespace nsp
