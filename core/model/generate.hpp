// The choice of the next token from logits.
#pragma once

#include <cstdint>
#include <span>

namespace nsp {

struct Sampling {
  double temperature = 1.0;  // 0: always the likeliest token
  int64_t top_k = 0;         // only the k likeliest are drawn from; 0 = all
  uint64_t seed = 1;
  int64_t vocabulary = 0;  // only tokens below it are drawn, for a tokenizer that knows fewer than the model; 0 = all
};

// logits: of one row, in host memory, the true vocabulary only (no padding). position: of the token that is drawn; with the
// seed it fixes the random number, so a continuation does not depend on how it was cut into calls. Equal logits: the lower
// token comes first. Error(usage) if temperature or top_k are negative; Error(input) if a logit is NaN or none is finite.
int32_t next_token(std::span<const float> logits, const Sampling& sampling, uint64_t position);

}  // namespace nsp
