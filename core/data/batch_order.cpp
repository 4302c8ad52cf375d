#include "core/data/batch_order.hpp"

#include <algorithm>
#include <bit>

#include "nsp/error.hpp"

namespace nsp {
namespace {

// Finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t mixed(uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

int64_t permuted(int64_t index, int64_t size, uint64_t key) noexcept {
  // Halves of at least 4 bits: smaller Feistel networks reach too few of the permutations. The domain is below 4 size or 256.
  const int bits = std::max(4, static_cast<int>(std::bit_width(static_cast<uint64_t>(size - 1)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  constexpr uint64_t rounds = 8;
  auto x = static_cast<uint64_t>(index);
  do {
    uint64_t left = x >> bits, right = x & mask;
    for (uint64_t r = 0; r < rounds; ++r) {
      const uint64_t next = left ^ (mixed(mixed(key + r) ^ right) & mask);
      left = right;
      right = next;
    }
    x = left << bits | right;
  } while (x >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(x);
}

BatchOrder::BatchOrder(int64_t samples, int64_t global_batch, bool shuffle, uint64_t seed)
    : samples_(samples), global_batch_(global_batch), steps_per_epoch_(0), shuffle_(shuffle), seed_(seed) {
  NSP_REQUIRE(global_batch >= 1 && samples >= 0, "a step takes at least one sequence");
  if (samples < global_batch)
    throw Error(ErrorKind::input, "the training data has " + std::to_string(samples) + " windows, one step takes " +
                                      std::to_string(global_batch) +
                                      ". Not one step can be filled. Give more text (data.path), or lower "
                                      "train.global_batch or train.context.");
  steps_per_epoch_ = samples / global_batch;
}

int64_t BatchOrder::sample(int64_t step, int64_t i) const {
  NSP_REQUIRE(step >= 0 && i >= 0 && i < global_batch_, "a sample is asked for within a step");
  const int64_t index = step % steps_per_epoch_ * global_batch_ + i;
  if (!shuffle_) return index;
  return permuted(index, samples_, mixed(mixed(seed_) ^ static_cast<uint64_t>(epoch(step))));
}

std::string BatchOrder::position(int64_t step) const {
  const int64_t done = step % steps_per_epoch_;
  return "epoch " + std::to_string(epoch(step) + 1) + ", step " + std::to_string(done) + " of " + std::to_string(steps_per_epoch_) +
         ", sample " + std::to_string(done * global_batch_) + " of " + std::to_string(samples_);
}

}  // namespace nsp
