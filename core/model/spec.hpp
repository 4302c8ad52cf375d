// The sizes of a model and what follows from them.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

struct ModelSpec {
  std::string family = "gpt2";
  int64_t layers = 0;
  int64_t hidden = 0;    // C
  int64_t heads = 0;     // H
  int64_t head_dim = 0;  // D; 0 = hidden / heads
  int64_t ffn = 0;       // F; 0 = 4 hidden
  int64_t vocab = 0;     // V, true size
  int64_t context = 0;   // rows of the position table = the longest sequence
  double norm_eps = 1e-5;
  int64_t window = 0;  // a query sees this many newest keys; 0 = all

  // Rows of the token table in storage: the multiple of 64 that vector units and tensor cores like. The extra rows exist in
  // memory only; they never enter the softmax.
  int64_t padded_vocab() const noexcept { return (vocab + 63) / 64 * 64; }
  int64_t attention_width() const noexcept { return heads * head_dim; }
  // True elements of all tensors, the tied table once. REQUIRES completed sizes.
  int64_t parameters() const noexcept;
  // Fills head_dim and ffn where they are 0, then check().
  ModelSpec completed() const;
  // Error(usage) that names the key, why it cannot be, and what to change.
  void check() const;
  // Floating-point operations of forward and backward for one token in sequences of `tokens`: 6 (N - position table) for the
  // matrices (2 forward, 4 backward a weight; the tied table counts once, as the head's matrix) and 12 layers H D S for
  // attention, S = mean number of keys that a query sees under the causal mask and the window.
  // Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B, which counts S = tokens; only what is really seen is counted here.
  double flops_per_token(int64_t tokens) const noexcept;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace nsp
