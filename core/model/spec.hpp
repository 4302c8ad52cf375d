// The sizes of a model and what follows from them.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

struct ModelSpec {
  // gpt2: learned positions, LayerNorm, GELU, biases. Radford et al., "Language models are unsupervised multitask learners" (2019).
  // llama: rotary positions, RMSNorm, SwiGLU, no biases (but for an optional one of q, k, v). Touvron et al., arXiv 2302.13971.
  std::string family = "gpt2";
  int64_t layers = 0;
  int64_t hidden = 0;           // C
  int64_t heads = 0;            // H
  int64_t kv_heads = 0;         // G; 0 = heads. H / G query heads share a key/value head. Ainslie et al., arXiv 2305.13245
  int64_t head_dim = 0;         // D; 0 = hidden / heads
  int64_t ffn = 0;              // F; 0 = 4 hidden for gpt2; for llama 8/3 hidden, rounded up to a multiple of 256
  int64_t vocab = 0;            // V, true size
  int64_t context = 0;          // the longest sequence; gpt2: rows of the position table
  double rope_theta = 10000.0;  // base of the rotary angles; gpt2 has none
  double norm_eps = 1e-5;
  bool tied = true;  // the head's classifier is the token table; else it has a table of its own
  bool qkv_bias = true;
  int64_t window = 0;  // a query sees this many newest keys; 0 = all

  // What holds for a family where nothing else is said; sizes are left open. Error(usage) for a family that is not known.
  static ModelSpec of_family(const std::string& family);

  bool is_llama() const noexcept { return family == "llama"; }
  // Rows of the token table in storage: the multiple of 64 that vector units and tensor cores like. The extra rows exist in
  // memory only; they never enter the softmax.
  int64_t padded_vocab() const noexcept { return (vocab + 63) / 64 * 64; }
  int64_t attention_width() const noexcept { return heads * head_dim; }
  int64_t qkv_width() const noexcept { return (heads + 2 * kv_heads) * head_dim; }
  // True elements of all tensors, a tied table once. REQUIRES completed sizes.
  int64_t parameters() const noexcept;
  // Fills kv_heads, head_dim and ffn where they are 0, then check().
  ModelSpec completed() const;
  // Error(usage) that names the key, why it cannot be, and what to change.
  void check() const;
  // Floating-point operations of forward and backward for one token in sequences of `tokens`: 6 N' for the matrices (2 forward,
  // 4 backward a weight), N' = parameters without those that are only looked up (the position table, and the token table unless
  // it is the head's matrix too), and 12 layers H D S for attention, S = mean number of keys that a query sees under the causal
  // mask and the window. Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B, which counts S = tokens; only what is really
  // seen is counted here.
  double flops_per_token(int64_t tokens) const noexcept;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace nsp
