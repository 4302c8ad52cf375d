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
  };
}

}  // namespace

std::vector<std::string> preset_names() {
  return {"nano", "gpt2_124m"};
}

std::map<std::string, std::string> preset_values(const std::string& name) {
  const std::map<std::string, Values> all = presets();
  const auto found = all.find(name);
  NSP_REQUIRE(found != all.end(), "there is no preset " + name);
  return found->second;
}

}  // namespace nsp
