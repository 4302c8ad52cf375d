#include "core/model/spec.hpp"

#include <algorithm>
#include <cmath>

#include "nsp/error.hpp"

namespace nsp {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorKind::usage, text);
}

void at_least_one(const char* key, int64_t value, const char* meaning) {
  if (value >= 1) return;
  refuse(std::string("model.") + key + " = " + std::to_string(value) + " cannot be. It is " + meaning + ". Give a whole number >= 1.");
}

// Kernels and files address tokens and positions with 32 bits.
void fits_32_bits(const char* key, int64_t value) {
  if (value <= INT32_MAX) return;
  refuse(std::string("model.") + key + " = " + std::to_string(value) +
         " is too large. Tokens and positions are 32-bit numbers. Give at most " + std::to_string(INT32_MAX) + ".");
}

}  // namespace

ModelSpec ModelSpec::of_family(const std::string& family) {
  ModelSpec spec;
  spec.family = family;
  if (family != "gpt2" && family != "llama")
    refuse("model.family = " + family +
           " is not known. This version builds gpt2 (learned positions, LayerNorm, GELU, biases) and llama (rotary positions, RMSNorm, " +
           "SwiGLU, no biases). Give one of them.");
  spec.tied = spec.qkv_bias = family == "gpt2";
  return spec;
}

int64_t ModelSpec::parameters() const noexcept {
  const int64_t qkv = qkv_width() * (hidden + (qkv_bias ? 1 : 0)), out = hidden * attention_width();
  const int64_t tables = vocab * hidden * (tied ? 1 : 2);
  if (is_llama()) return tables + layers * (2 * hidden + qkv + out + 3 * ffn * hidden) + hidden;
  const int64_t mlp = ffn * hidden + ffn + hidden * ffn + hidden;
  return context * hidden + tables + layers * (4 * hidden + qkv + out + hidden + mlp) + 2 * hidden;
}

ModelSpec ModelSpec::completed() const {
  ModelSpec spec = *this;
  if (spec.kv_heads == 0) spec.kv_heads = heads;
  if (spec.head_dim == 0) {
    at_least_one("hidden", hidden, "the number of channels");
    at_least_one("heads", heads, "the number of attention heads");
    if (hidden % heads != 0)
      refuse("model.heads = " + std::to_string(heads) + " does not divide model.hidden = " + std::to_string(hidden) +
             ". Without model.head_dim each head gets hidden / heads channels. Choose heads that divide hidden, or give model.head_dim.");
    spec.head_dim = hidden / heads;
  }
  // Two matrices of 4 hidden hold as many weights as three of 8/3 hidden; rounded as in the published Llama code.
  if (spec.ffn == 0) spec.ffn = is_llama() ? (8 * hidden / 3 + 255) / 256 * 256 : 4 * hidden;
  spec.check();
  return spec;
}

void ModelSpec::check() const {
  of_family(family);
  at_least_one("layers", layers, "the number of blocks");
  at_least_one("hidden", hidden, "the number of channels");
  at_least_one("heads", heads, "the number of attention heads");
  at_least_one("kv_heads", kv_heads, "the number of key/value heads");
  at_least_one("head_dim", head_dim, "the number of channels of one head");
  at_least_one("ffn", ffn, "the width between the two matrices of a block");
  at_least_one("vocab", vocab, "the number of tokens that the model tells apart");
  at_least_one("context", context, "the longest sequence, in tokens");
  fits_32_bits("vocab", vocab);
  fits_32_bits("context", context);
  if (heads % kv_heads != 0)
    refuse("model.kv_heads = " + std::to_string(kv_heads) + " does not divide model.heads = " + std::to_string(heads) +
           ". Every key/value head serves equally many query heads. Choose kv_heads that divide heads, or leave it out.");
  if (is_llama() && head_dim % 2 != 0)
    refuse("model.head_dim = " + std::to_string(head_dim) +
           " is odd. The family llama turns the channels of a head in pairs. Choose hidden and heads whose quotient is even, or give an " +
           "even model.head_dim.");
  if (!(rope_theta > 0.0) || !std::isfinite(static_cast<float>(rope_theta)))
    refuse("model.rope_theta = " + std::to_string(rope_theta) +
           " cannot be. It is the base of the rotary angles. Give a positive number, such as 10000.");
  if (!(norm_eps > 0.0) || !std::isfinite(norm_eps))
    refuse("model.norm_eps = " + std::to_string(norm_eps) +
           " cannot be. It keeps the norm's division away from zero. Give a small positive number, such as 1e-5.");
  if (window < 0)
    refuse("model.window = " + std::to_string(window) + " cannot be. It is the number of newest tokens that attention sees. " +
           "Give 0 for all of them, or a whole number >= 1.");
}

double ModelSpec::flops_per_token(int64_t tokens) const noexcept {
  // Query t sees min(t + 1, window) keys; their sum over t in closed form: w (w + 1) / 2 while the window fills, then w each.
  const double t = static_cast<double>(std::max<int64_t>(tokens, 1));
  const double w = window > 0 ? std::min(static_cast<double>(window), t) : t;
  const double seen = (w * (w + 1.0) / 2.0 + (t - w) * w) / t;
  const int64_t looked_up = (is_llama() ? 0 : context * hidden) + (tied ? 0 : vocab * hidden);
  const double matrices = static_cast<double>(parameters() - looked_up);
  return 6.0 * matrices + 12.0 * static_cast<double>(layers * attention_width()) * seen;
}

}  // namespace nsp
