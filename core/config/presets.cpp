#include "core/config/presets.hpp"

#include "nsp/error.hpp"

namespace nsp {
namespace {

using Values = std::map<std::string, std::string>;

std::map<std::string, Values> presets() {
  return {
      // Small enough to train in minutes on two CPU cores. Byte vocabulary: 256 bytes and the end of a document.
      {"nano",
       {{"model.family", "gpt2"},
        {"model.layers", "4"},
        {"model.hidden", "128"},
        {"model.heads", "8"},
        {"model.ffn", "512"},
        {"model.vocab", "257"},
        {"model.context", "128"},
        {"train.steps", "1500"},
        {"train.lr", "2e-3"}}},
      // Radford et al. 2019, table 2, the smallest model; sizes as released.
      {"gpt2_124m",
       {{"model.family", "gpt2"},
        {"model.layers", "12"},
        {"model.hidden", "768"},
        {"model.heads", "12"},
        {"model.ffn", "3072"},
        {"model.vocab", "50257"},
        {"model.context", "1024"}}},
      // Brown et al. 2020 (arXiv 2005.14165), table 2.1, "GPT-3 13B", whose width of 5140 can only mean 40 heads of 128 channels.
      {"gpt2_13b",
       {{"model.family", "gpt2"},
        {"model.layers", "40"},
        {"model.hidden", "5120"},
        {"model.heads", "40"},
        {"model.ffn", "20480"},
        {"model.vocab", "50257"},
        {"model.context", "2048"}}},
      // For tests and benchmarks: 15M weights that compute, and a token table of 9M beside them. The sizes are those of
      // llama2.c's stories15M (github.com/karpathy/llama2.c), whose head is tied.
      {"llama_15m",
       {{"model.family", "llama"},
        {"model.layers", "6"},
        {"model.hidden", "288"},
        {"model.heads", "6"},
        {"model.ffn", "768"},
        {"model.vocab", "32000"},
        {"model.context", "256"}}},
      // Touvron et al. 2023 (arXiv 2302.13971), table 2; width of the feed-forward layer and epsilon as released.
      {"llama_7b",
       {{"model.family", "llama"},
        {"model.layers", "32"},
        {"model.hidden", "4096"},
        {"model.heads", "32"},
        {"model.ffn", "11008"},
        {"model.vocab", "32000"},
        {"model.context", "2048"},
        {"model.norm_eps", "1e-6"}}},
  };
}

}  // namespace

std::vector<std::string> preset_names() {
  return {"nano", "gpt2_124m", "gpt2_13b", "llama_15m", "llama_7b"};
}

std::map<std::string, std::string> preset_values(const std::string& name) {
  const std::map<std::string, Values> all = presets();
  const auto found = all.find(name);
  NSP_REQUIRE(found != all.end(), "there is no preset " + name);
  return found->second;
}

std::map<std::string, std::string> family_values(const std::string& family) {
  const char* value = family == "gpt2" ? "true" : "false";
  return {{"model.tied", value}, {"model.qkv_bias", value}};
}

}  // namespace nsp
