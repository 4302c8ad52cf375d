#include "core/model/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/model/philox.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

void check(std::span<const float> logits, const Sampling& sampling) {
  if (!(sampling.temperature >= 0.0) || std::isinf(sampling.temperature))
    throw Error(ErrorKind::usage,
                "the temperature " + std::to_string(sampling.temperature) +
                    " cannot be used. Logits are divided by it. Give 0 (always the likeliest token) or a positive number.");
  if (sampling.top_k < 0)
    throw Error(ErrorKind::usage, "top-k " + std::to_string(sampling.top_k) +
                                      " cannot be used. It is the number of tokens to draw from. Give 0 (all) or a positive number.");
  bool finite = false;
  for (const float logit : logits) {
    if (std::isnan(logit))
      throw Error(ErrorKind::input,
                  "the model's output is not a number. The weights are damaged or training diverged. Use an earlier checkpoint.");
    finite = finite || std::isfinite(logit);
  }
  if (!finite)
    throw Error(ErrorKind::input,
                "the model gives no token a finite score. The weights are damaged or training diverged. Use an earlier checkpoint.");
}

}  // namespace

int32_t next_token(std::span<const float> logits, const Sampling& sampling, uint64_t position) {
  if (sampling.vocabulary > 0) logits = logits.first(std::min(logits.size(), static_cast<std::size_t>(sampling.vocabulary)));
  check(logits, sampling);
  if (sampling.temperature == 0.0) return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());

  std::vector<int32_t> candidates(logits.size());
  std::iota(candidates.begin(), candidates.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  if (sampling.top_k > 0 && sampling.top_k < static_cast<int64_t>(candidates.size())) {
    std::nth_element(candidates.begin(), candidates.begin() + sampling.top_k, candidates.end(), likelier);
    candidates.resize(static_cast<std::size_t>(sampling.top_k));
    std::sort(candidates.begin(), candidates.end());  // the order of drawing is by token, whatever nth_element left
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> cumulative(candidates.size());
  double total = 0.0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    cumulative[i] = total += std::exp((logits[static_cast<std::size_t>(candidates[i])] - largest) / sampling.temperature);

  // 53 random bits, as many as a double's fraction in [0,1) holds.
  const auto words = philox(sampling.seed, position, 0);
  const double u = static_cast<double>(((static_cast<uint64_t>(words[0]) << 32) | words[1]) >> 11) * 0x1p-53;
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end() - 1, u * total);
  return candidates[static_cast<std::size_t>(drawn - cumulative.begin())];
}

}  // namespace nsp
