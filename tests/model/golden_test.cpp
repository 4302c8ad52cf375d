// llm.c's GPT-2 on a tiny model: 41 AdamW steps against losses and parameters made with torch in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/model/rig.hpp"

namespace nsp::test {
namespace {

std::string golden(const std::string& file) {
  const char* root = std::getenv("NSP_TEST_SOURCE_DIR");
  return std::string(root != nullptr ? root : ".") + "/tests/golden/llmc_tiny/" + file;
}

template <class T>
std::vector<T> read_array(const std::string& path, std::size_t skip_bytes) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  const std::string bytes = text.str();
  if (bytes.size() < skip_bytes) return {};
  std::vector<T> out((bytes.size() - skip_bytes) / sizeof(T));
  std::copy_n(bytes.data() + skip_bytes, out.size() * sizeof(T), reinterpret_cast<char*>(out.data()));
  return out;
}

constexpr std::size_t header_bytes = 1024;

ModelSpec read_spec() {
  const auto header = read_array<int32_t>(golden("gpt2_124M.bin"), 0);
  EXPECT_EQ(header.at(0), 20240326);
  ModelSpec spec;
  spec.context = header.at(2);
  spec.vocab = header.at(3);
  spec.layers = header.at(4);
  spec.heads = header.at(5);
  spec.hidden = header.at(6);
  EXPECT_EQ(header.at(7), spec.padded_vocab());
  return spec.completed();
}

// llm.c's order: each tensor for all layers, wte padded and first.
Params from_llmc(const ModelSpec& spec, const std::vector<float>& flat) {
  Params params;
  std::size_t offset = 0;
  const auto take = [&](const std::string& name, int64_t count, int64_t stored) {
    const auto at = flat.begin() + static_cast<std::ptrdiff_t>(offset);
    params[name] = Values(at, at + count);
    offset += static_cast<std::size_t>(stored);
  };
  const auto layers = [&](const std::string& name, int64_t count) {
    for (int64_t l = 0; l < spec.layers; ++l) take("blocks." + std::to_string(l) + "." + name, count, count);
  };
  const int64_t C = spec.hidden;
  take("embedding.wte", spec.vocab * C, spec.padded_vocab() * C);
  take("embedding.wpe", spec.context * C, spec.context * C);
  layers("ln1.weight", C);
  layers("ln1.bias", C);
  layers("attn.qkv.weight", 3 * C * C);
  layers("attn.qkv.bias", 3 * C);
  layers("attn.proj.weight", C * C);
  layers("attn.proj.bias", C);
  layers("ln2.weight", C);
  layers("ln2.bias", C);
  layers("mlp.fc.weight", 4 * C * C);
  layers("mlp.fc.bias", 4 * C);
  layers("mlp.proj.weight", 4 * C * C);
  layers("mlp.proj.bias", C);
  take("head.ln.weight", C, C);
  take("head.ln.bias", C, C);
  EXPECT_EQ(offset, flat.size());
  return params;
}

ReferenceBatch batch_at(const std::vector<uint16_t>& tokens, std::size_t index) {
  ReferenceBatch batch;
  batch.batch = 4;
  batch.tokens = 64;
  for (std::size_t i = 0; i < 256; ++i) {
    batch.input.push_back(tokens.at(index * 256 + i));
    batch.target.push_back(tokens.at(index * 256 + i + 1));
    batch.position.push_back(static_cast<int32_t>(i % 64));
  }
  return batch;
}

struct Expected {
  std::vector<double> train, validation;
};

Expected read_expected() {
  Expected expected;
  std::ifstream in(golden("expected_torch_fp64.txt"));
  for (std::string line; std::getline(in, line);) {
    double loss = 0;
    int step = 0;
    if (std::sscanf(line.c_str(), "val loss %lf", &loss) == 1) expected.validation.push_back(loss);
    if (std::sscanf(line.c_str(), "step %d: train loss %lf", &step, &loss) == 2) expected.train.push_back(loss);
  }
  return expected;
}

class AdamW {
 public:
  AdamW(Rig& rig, ParamBuffers& params, int segments) : rig_(rig), params_(params) {
    for (int s = 0; s < segments; ++s) {
      const int64_t n = params.weight_storage(s).elements();
      first_.push_back(rig.upload(Values(static_cast<std::size_t>(n)), {n}));
      second_.push_back(rig.upload(Values(static_cast<std::size_t>(n)), {n}));
    }
  }
  void step(double gradient_scale) {
    const double beta1 = 0.9, beta2 = 0.999;
    ++count_;
    const Ops::AdamwScalars s{.lr = 1e-3f,
                              .beta1 = static_cast<float>(beta1),
                              .one_minus_beta1 = static_cast<float>(1 - beta1),
                              .beta2 = static_cast<float>(beta2),
                              .one_minus_beta2 = static_cast<float>(1 - beta2),
                              .eps = 1e-8f,
                              .weight_decay = 0,
                              .correction1 = static_cast<float>(1 / (1 - std::pow(beta1, count_))),
                              .correction2 = static_cast<float>(1 / (1 - std::pow(beta2, count_))),
                              .gradient_scale = static_cast<float>(gradient_scale)};
    for (std::size_t i = 0; i < first_.size(); ++i)
      rig_.ops().adamw(params_.weight_storage(static_cast<int>(i)), params_.gradient_storage(static_cast<int>(i)), first_[i], second_[i],
                       s);
  }

 private:
  Rig& rig_;
  ParamBuffers& params_;
  std::vector<TensorView> first_, second_;
  int count_ = 0;
};

TEST(GoldenLlmc, FirstLossAndGradientsMatchTheReference) {
  const ModelSpec spec = read_spec();
  const Params params = from_llmc(spec, read_array<float>(golden("gpt2_124M.bin"), header_bytes));
  const ReferenceBatch batch =
      batch_at(read_array<uint16_t>(golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin"), header_bytes), 0);
  const ReferenceResult want = reference_step(spec, params, batch, true);
  EXPECT_NEAR(want.loss_sum / 256, read_expected().train.at(0), 1e-8);
  Rig rig;
  ModelRig model(rig, spec, params, 4, 64);
  EXPECT_NEAR(model.step(batch, true) / 256, want.loss_sum / 256, 1e-6);
  expect_close(model.params().read_gradients(), want.gradients, 1e-5);
}

TEST(GoldenLlmc, FortyOneAdamWSteps) {
  const ModelSpec spec = read_spec();
  const Expected expected = read_expected();
  ASSERT_EQ(expected.train.size(), 41u);
  ASSERT_EQ(expected.validation.size(), 5u);
  const auto train = read_array<uint16_t>(golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin"), header_bytes);
  const auto validation = read_array<uint16_t>(golden("dev/data/tinyshakespeare/tiny_shakespeare_val.bin"), header_bytes);
  Rig rig;
  ModelRig model(rig, spec, from_llmc(spec, read_array<float>(golden("gpt2_124M.bin"), header_bytes)), 4, 64);
  AdamW adamw(rig, model.params(), static_cast<int>(model.model().table().segments().size()));
  for (std::size_t step = 0; step < 41; ++step) {
    if (step % 10 == 0) {
      double loss = 0;
      for (std::size_t i = 0; i < 5; ++i) loss += model.step(batch_at(validation, i), false) / 256 / 5;
      EXPECT_NEAR(loss, expected.validation[step / 10], 1e-4) << "validation before step " << step;
    }
    model.params().zero_gradients();
    EXPECT_NEAR(model.step(batch_at(train, step), true) / 256, expected.train[step], 1e-4) << "step " << step;
    adamw.step(1.0 / 256);
  }
  const Params want = from_llmc(spec, read_array<float>(golden("params_after.bin"), 0)), got = model.params().read_weights();
  for (const auto& [name, value] : want) {
    double worst = 0;
    for (std::size_t i = 0; i < value.size(); ++i) worst = std::max(worst, std::abs(value[i] - got.at(name)[i]));
    EXPECT_LE(worst, 1e-4) << name;
  }
}

}  // namespace
}  // namespace nsp::test
