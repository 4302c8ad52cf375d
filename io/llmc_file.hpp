// Model files of llm.c (github.com/karpathy/llm.c, train_gpt2.py, write_model): 256 int32 of header (20240326, version, context,
// vocabulary, layers, heads, channels, padded vocabulary), then all parameters: fp32 in version 3, bf16 in version 5.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nsp {

struct LlmcTensor {
  std::vector<int64_t> shape;     // weights of linear layers are (out, in), row-major
  std::span<const float> values;  // into LlmcModel::storage
};

struct LlmcModel {
  int64_t context = 0;       // positions
  int64_t vocab = 0;         // true vocabulary
  int64_t padded_vocab = 0;  // rows of wte in the file; rows beyond vocab are not passed on
  int64_t layers = 0, heads = 0, channels = 0;
  // By nsp's tensor names: embedding.{wte [vocab, C], wpe [context, C]}, blocks.<l>.{ln1,ln2}.{weight,bias} [C],
  // blocks.<l>.attn.qkv.{weight [3C, C], bias [3C]}, blocks.<l>.attn.proj.{weight [C, C], bias [C]},
  // blocks.<l>.mlp.fc.{weight [4C, C], bias [4C]}, blocks.<l>.mlp.proj.{weight [C, 4C], bias [C]}, head.ln.{weight,bias} [C].
  std::map<std::string, LlmcTensor> tensors;
  std::unique_ptr<float[]> storage;  // fp32 in either version
};

// True if the file starts as an llm.c model does (any version). False too if it cannot be read.
bool is_llmc_model(const std::string& path);
// Error(input) if it is no such file, of a version that is not read, torn, or of impossible sizes; Error(io) if it cannot be read.
LlmcModel read_llmc_model(const std::string& path);

}  // namespace nsp
