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

int64_t ModelSpec::parameters() const noexcept {
  const int64_t width = attention_width();
  const int64_t attention = 3 * width * hidden + 3 * width + hidden * width + hidden;
  const int64_t mlp = ffn * hidden + ffn + hidden * ffn + hidden;
  return (context + vocab) * hidden + layers * (4 * hidden + attention + mlp) + 2 * hidden;
}

ModelSpec ModelSpec::completed() const {
  ModelSpec spec = *this;
  if (spec.head_dim == 0) {
    at_least_one("hidden", hidden, "the number of channels");
    at_least_one("heads", heads, "the number of attention heads");
    if (hidden % heads != 0)
      refuse("model.heads = " + std::to_string(heads) + " does not divide model.hidden = " + std::to_string(hidden) +
             ". Without model.head_dim each head gets hidden / heads channels. Choose heads that divide hidden, or give model.head_dim.");
    spec.head_dim = hidden / heads;
  }
  if (spec.ffn == 0) spec.ffn = 4 * hidden;
  spec.check();
  return spec;
}

void ModelSpec::check() const {
  if (family != "gpt2")
    refuse("model.family = " + family +
           " is not known. This version builds gpt2: learned positions, LayerNorm, GELU, biases, a tied head. " +
           "Give model.family = gpt2.");
  at_least_one("layers", layers, "the number of blocks");
  at_least_one("hidden", hidden, "the number of channels");
  at_least_one("heads", heads, "the number of attention heads");
  at_least_one("head_dim", head_dim, "the number of channels of one head");
  at_least_one("ffn", ffn, "the width between the two matrices of a block");
  at_least_one("vocab", vocab, "the number of tokens that the model tells apart");
  at_least_one("context", context, "the longest sequence, in tokens");
  fits_32_bits("vocab", vocab);
  fits_32_bits("context", context);
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
  const double matrices = static_cast<double>(parameters() - context * hidden);
  return 6.0 * matrices + 12.0 * static_cast<double>(layers * attention_width()) * seen;
}

}  // namespace nsp
