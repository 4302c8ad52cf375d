#include "tests/train/llmc_tiny.hpp"

#include <algorithm>

namespace nsp::test {

LocalSettings tiny_settings() {
  // Shared by all ranks of all tests: read-only after the first call.
  static const LlmcModel model = read_llmc_model(golden("llmc_tiny/gpt2_124M.bin"));
  LocalSettings s;
  s.spec.layers = model.layers;
  s.spec.hidden = model.channels;
  s.spec.heads = model.heads;
  s.spec.vocab = model.vocab;
  s.spec.context = model.context;
  s.context = 64;
  s.global_batch = 4;
  s.train.clip = 0;
  s.train.eval_every = 0;
  s.train.eval_batches = 5;
  s.train.checkpoint_every = 0;
  s.train.verify_every = 0;
  s.train.schedule.kind = ScheduleKind::constant;
  s.train.schedule.peak = 1e-3;
  s.train.schedule.warmup = 0;
  s.weights = [](const Param& param, int64_t offset, int64_t count, float* out) {
    const std::span<const float> values = model.tensors.at(param.name).values;
    std::copy_n(values.begin() + offset, count, out);
  };
  s.train_data = [] { return tiny_data("train"); };
  return s;
}

}  // namespace nsp::test
