#include "core/data/mix_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "nsp/error.hpp"

namespace nsp {
namespace {
constexpr int64_t longest_period = 65536;

// The weights times scale, if these are whole numbers of a period that is short enough; else empty.
std::vector<int64_t> scaled(std::span<const double> weights, double scale) {
  std::vector<int64_t> out;
  int64_t divisor = 0;
  for (const double weight : weights) {
    const double value = weight * scale;
    if (value > 1e15 || std::abs(value - std::round(value)) > 1e-9 * std::max(1.0, value) || std::round(value) < 1) return {};
    out.push_back(std::llround(value));
    divisor = std::gcd(divisor, out.back());
  }
  int64_t sum = 0;
  for (int64_t& value : out) sum += value /= divisor;
  return sum <= longest_period ? out : std::vector<int64_t>{};
}

}  // namespace

std::vector<int64_t> whole_weights(std::span<const double> weights) {
  NSP_REQUIRE(!weights.empty() && weights.size() <= 1000, "a mixture has corpora");
  double sum = 0;
  for (const double weight : weights) {
    NSP_REQUIRE(weight > 0 && std::isfinite(weight), "a corpus of a mixture has a positive weight");
    sum += weight;
  }
  for (const double scale : {1.0, 10.0, 100.0, 1e3, 1e4})
    if (std::vector<int64_t> out = scaled(weights, scale); !out.empty()) return out;
  std::vector<int64_t> out;
  std::vector<std::pair<double, std::size_t>> rest;  // what was cut off, the largest first
  int64_t left = longest_period;
  for (std::size_t c = 0; c < weights.size(); ++c) {
    const double share = weights[c] / sum * static_cast<double>(longest_period);
    out.push_back(std::max<int64_t>(1, static_cast<int64_t>(share)));
    rest.emplace_back(-(share - std::floor(share)), c);
    left -= out.back();
  }
  std::sort(rest.begin(), rest.end());
  for (std::size_t i = 0; left > 0; --left, i = (i + 1) % rest.size()) ++out[rest[i].second];
  for (; left < 0; ++left) --*std::max_element(out.begin(), out.end());
  return out;
}

MixSchedule::MixSchedule(std::vector<int64_t> weights) : weights_(std::move(weights)) {
  int64_t period = 0;
  for (const int64_t weight : weights_) {
    NSP_REQUIRE(weight >= 1, "a corpus of a mixture has a positive weight");
    period += weight;
  }
  NSP_REQUIRE(period >= 1 && period <= longest_period, "the period of a mixture is at most 65,536");
  slots_.reserve(static_cast<std::size_t>(period));
  const auto corpora = static_cast<int64_t>(weights_.size()), d = 2 * corpora - 2;
  std::vector<int64_t> counts(weights_.size(), 0);
  for (int64_t n = 1; n <= period; ++n) {
    // lag = (n weight / period - count) period. A corpus may come if lag / period >= 1 / d; of these the one whose deadline
    // (1 - 1 / d - lag / period) period / weight is first. All times d, so that the numbers stay whole.
    std::size_t best = 0;
    int64_t first_deadline = 0;
    bool found = corpora == 1;
    for (std::size_t c = 0; c < weights_.size() && corpora > 1; ++c) {
      const int64_t lag = n * weights_[c] - period * counts[c];
      if (d * lag < period) continue;
      const int64_t deadline = (d - 1) * period - d * lag;
      if (found && deadline * weights_[best] >= first_deadline * weights_[c]) continue;  // deadline / weight; the first of equals stays
      found = true;
      best = c;
      first_deadline = deadline;
    }
    NSP_REQUIRE(found, "some corpus of a mixture is always due");
    slots_.push_back({static_cast<uint32_t>(best), static_cast<uint32_t>(counts[best]++)});
  }
}

MixSchedule::Place MixSchedule::at(int64_t n) const {
  NSP_REQUIRE(n >= 0, "samples are counted from 0");
  const Slot slot = slots_[static_cast<std::size_t>(n % period())];
  return {slot.corpus, n / period() * weights_[slot.corpus] + slot.index};
}

int64_t MixSchedule::count(std::size_t corpus, int64_t n) const {
  int64_t count = n / period() * weights_[corpus];
  for (int64_t i = 0; i < n % period(); ++i) count += slots_[static_cast<std::size_t>(i)].corpus == corpus ? 1 : 0;
  return count;
}

}  // namespace nsp
