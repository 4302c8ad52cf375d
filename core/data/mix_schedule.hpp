// Which corpus of a mixture the n-th sample is of, for any n: a fixed period that is repeated.
//
// In a period corpus c stands weights[c] times, and after any number n of samples its count is within 1 of n weights[c] / period
// (Tijdeman, "The chairman assignment problem", Discrete Mathematics 32, 1980). So every batch has nearly the proportions asked for, and
// every period has them exactly. Immutable: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nsp {

// Positive weights as whole numbers with a sum of at most 65,536: exact if they have up to four decimals and are small enough, else the
// nearest shares of 65,536, none of them 0.
std::vector<int64_t> whole_weights(std::span<const double> weights);

class MixSchedule {
 public:
  explicit MixSchedule(std::vector<int64_t> weights);  // REQUIRES positive weights with a sum of at most 65,536

  struct Place {
    std::size_t corpus;
    int64_t index;  // among the samples of this corpus, from 0; it does not stop at the corpus' end
  };
  Place at(int64_t n) const;                           // REQUIRES n >= 0
  int64_t count(std::size_t corpus, int64_t n) const;  // samples of a corpus among the first n
  int64_t period() const noexcept { return static_cast<int64_t>(slots_.size()); }
  const std::vector<int64_t>& weights() const noexcept { return weights_; }

 private:
  struct Slot {
    uint32_t corpus, index;  // index: in the period
  };
  std::vector<int64_t> weights_;
  std::vector<Slot> slots_;
};

}  // namespace nsp
