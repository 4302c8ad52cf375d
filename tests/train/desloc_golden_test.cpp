// The plug-in desloc against its published algorithm in float64 (tests/golden/desloc_tiny): every replica's loss at every
// step, and the mean parameters at the end; on the CPU, on fake devices, and with two sequence ranks a replica.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

struct Reference {
  int replicas = 0, steps = 0;
  int64_t batch = 0;  // sequences a step of each replica
  int64_t kx = 0, ku = 0, kv = 0;
  std::vector<std::vector<double>> losses, norms;
  double val_loss = 0;
  struct Stats {
    double sum = 0, norm = 0;
    std::vector<double> first;
  };
  std::map<std::string, Stats> parameters;  // by the names of the reference
};

std::string quoted_key(const std::string& key) {
  std::string text = "\"";
  return text.append(key).append("\":");
}

// All numbers behind "key": in order, up to the bracket that closes the value.
std::vector<double> numbers_of(const std::string& json, const std::string& key, std::size_t from = 0) {
  std::size_t at = json.find(quoted_key(key), from);
  EXPECT_NE(at, std::string::npos) << key;
  at += key.size() + 3;
  std::vector<double> out;
  int depth = 0;
  while (at < json.size()) {
    const char c = json[at];
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) {
      char* end = nullptr;
      out.push_back(std::strtod(json.c_str() + at, &end));
      at = static_cast<std::size_t>(end - json.c_str());
      if (depth == 0) break;
      continue;
    }
    if (depth == 0 && (c == ']' || c == ',' || c == '}')) break;
    ++at;
  }
  return out;
}

Reference read_reference(const std::string& name) {
  std::ifstream in(golden("desloc_tiny/" + name));
  std::stringstream text;
  text << in.rdbuf();
  const std::string json = text.str();
  EXPECT_FALSE(json.empty()) << name;
  Reference r;
  r.replicas = static_cast<int>(numbers_of(json, "replicas").at(0));
  r.steps = static_cast<int>(numbers_of(json, "steps").at(0));
  r.batch = static_cast<int64_t>(numbers_of(json, "batch_per_replica").at(0));
  r.kx = static_cast<int64_t>(numbers_of(json, "kx").at(0));
  r.ku = static_cast<int64_t>(numbers_of(json, "ku").at(0));
  r.kv = static_cast<int64_t>(numbers_of(json, "kv").at(0));
  const std::vector<double> losses = numbers_of(json, "replica_losses"), norms = numbers_of(json, "replica_grad_norms");
  for (int t = 0; t < r.steps; ++t) {
    r.losses.emplace_back(losses.begin() + t * r.replicas, losses.begin() + (t + 1) * r.replicas);
    r.norms.emplace_back(norms.begin() + t * r.replicas, norms.begin() + (t + 1) * r.replicas);
  }
  r.val_loss = numbers_of(json, "val_loss_of_mean").at(0);
  const std::size_t from = json.find("\"mean_parameters\"");
  for (const char* p : {"wte", "wpe", "ln1w", "ln1b", "qkvw", "qkvb", "ow", "ob", "ln2w", "ln2b", "fw", "fb", "gw", "gb", "lfw", "lfb"}) {
    const std::size_t at = json.find(quoted_key(p), from);
    r.parameters[p] = {numbers_of(json, "sum", at).at(0), numbers_of(json, "norm", at).at(0), numbers_of(json, "first", at)};
  }
  return r;
}

// A tensor of the reference: the same tensor of all layers one after the other.
std::vector<float> as_reference(const std::map<std::string, std::vector<float>>& model, const std::string& name) {
  static const std::map<std::string, std::string> in_block = {
      {"ln1w", "ln1.weight"},     {"ln1b", "ln1.bias"},     {"qkvw", "attn.qkv.weight"}, {"qkvb", "attn.qkv.bias"},
      {"ow", "attn.proj.weight"}, {"ob", "attn.proj.bias"}, {"ln2w", "ln2.weight"},      {"ln2b", "ln2.bias"},
      {"fw", "mlp.fc.weight"},    {"fb", "mlp.fc.bias"},    {"gw", "mlp.proj.weight"},   {"gb", "mlp.proj.bias"}};
  static const std::map<std::string, std::string> single = {
      {"wte", "embedding.wte"}, {"wpe", "embedding.wpe"}, {"lfw", "head.ln.weight"}, {"lfb", "head.ln.bias"}};
  if (single.count(name)) return model.at(single.at(name));
  std::vector<float> out;
  for (int l = 0; l < 2; ++l) {
    const std::vector<float>& part = model.at("blocks." + std::to_string(l) + "." + in_block.at(name));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::string period(int64_t k) {
  return k == 0 ? "inf" : std::to_string(k);
}

// The reference evaluates on the first 20 windows.
class FirstSamples : public DataSource {
 public:
  FirstSamples(std::unique_ptr<DataSource> all, int64_t count) : all_(std::move(all)), count_(count) {}
  int64_t samples() const override { return count_; }
  int64_t context() const override { return all_->context(); }
  int64_t vocabulary() const override { return all_->vocabulary(); }
  const std::string& tokenizer() const override { return all_->tokenizer(); }
  const std::string& fingerprint() const override { return all_->fingerprint(); }
  double bytes_per_token() const override { return all_->bytes_per_token(); }
  void read(int64_t sample, int32_t* tokens, int32_t* document_start) override { all_->read(sample, tokens, document_start); }

 private:
  std::unique_ptr<DataSource> all_;
  int64_t count_;
};

struct Case {
  const char* file;
  bool fake_device;
  int sequence_ranks;
};

class DeslocGolden : public testing::TestWithParam<Case> {};

TEST_P(DeslocGolden, LossesAndMeanParameters) {
  const Case c = GetParam();
  const Reference r = read_reference(c.file);
  LocalSettings s = tiny_settings();
  s.ranks = r.replicas;
  s.sync = "desloc";
  s.options = {{"desloc.kx", period(r.kx)}, {"desloc.ku", period(r.ku)}, {"desloc.kv", period(r.kv)}};
  s.fake_device = c.fake_device;
  s.global_batch = r.batch * r.replicas;
  s.train.clip = 1.0;
  s.train.steps = r.steps;
  s.val_data = [] { return std::make_unique<FirstSamples>(tiny_data("val"), 20); };
  const LocalResult result = run_local(with_autosp(s, c.sequence_ranks));

  for (int t = 0; t < r.steps; ++t)
    for (int m = 0; m < r.replicas; ++m) {
      EXPECT_NEAR(result.losses.at(static_cast<std::size_t>(t)).at(static_cast<std::size_t>(m)),
                  r.losses[static_cast<std::size_t>(t)][static_cast<std::size_t>(m)], 1e-4)
          << "step " << t << " replica " << m;
      EXPECT_NEAR(result.norms[static_cast<std::size_t>(t)][static_cast<std::size_t>(m)],
                  r.norms[static_cast<std::size_t>(t)][static_cast<std::size_t>(m)], 1e-4)
          << "step " << t << " replica " << m;
    }
  double validation_loss = std::nan("");  // of the last evaluation
  for (const std::string& line : result.metrics)
    if (line.find("\"kind\":\"eval\"") != std::string::npos) validation_loss = json_number(line, "val_loss");
  EXPECT_NEAR(validation_loss, r.val_loss, 1e-4);
  for (const auto& [name, stats] : r.parameters) {
    std::vector<float> values = as_reference(result.model, name);
    if (name == "wte") values.resize(512 * 64, 0.0f);  // the reference holds the padded rows, which stay 0
    double sum = 0, squares = 0;
    for (float v : values) {
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    EXPECT_NEAR(sum, stats.sum, 1e-4) << name;
    EXPECT_NEAR(std::sqrt(squares), stats.norm, 1e-5) << name;
    for (std::size_t i = 0; i < stats.first.size(); ++i) EXPECT_NEAR(values[i], stats.first[i], 1e-5) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DeslocGolden,
                         testing::Values(Case{"m2_k1_1_1.json", false, 1}, Case{"m2_k2_4_8.json", false, 1},
                                         Case{"m2_k4_inf_inf.json", false, 1}, Case{"m4_k3_9_18.json", false, 1},
                                         Case{"m2_k2_4_8.json", true, 1}, Case{"m4_k3_9_18.json", true, 1},
                                         Case{"m2_k1_1_1.json", false, 2}, Case{"m2_k2_4_8.json", false, 2},
                                         Case{"m2_k4_inf_inf.json", false, 2}, Case{"m4_k3_9_18.json", false, 2},
                                         Case{"m2_k2_4_8.json", true, 2}),
                         [](const testing::TestParamInfo<Case>& i) {
                           std::string name = i.param.file;
                           name = name.substr(0, name.find('.'));
                           return name + (i.param.fake_device ? "_fake" : "") + (i.param.sequence_ranks > 1 ? "_sp2" : "");
                         });

}  // namespace
}  // namespace nsp::test
