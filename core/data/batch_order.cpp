#include "core/data/batch_order.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

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

std::vector<int64_t> weights_of(const std::vector<CorpusShare>& corpora) {
  std::vector<int64_t> weights;
  for (const CorpusShare& corpus : corpora) weights.push_back(corpus.weight);
  return corpora.size() > 1 ? weights : std::vector<int64_t>{1};
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
    : BatchOrder(std::vector<CorpusShare>{{"data", samples, 1}}, global_batch, shuffle, seed) {}

BatchOrder::BatchOrder(std::vector<CorpusShare> corpora, int64_t global_batch, bool shuffle, uint64_t seed)
    : corpora_(std::move(corpora)),
      schedule_(weights_of(corpora_)),
      samples_(0),
      global_batch_(global_batch),
      steps_per_epoch_(0),
      shuffle_(shuffle),
      seed_(seed) {
  NSP_REQUIRE(global_batch >= 1, "a step takes at least one sequence");
  for (const CorpusShare& corpus : corpora_) {
    NSP_REQUIRE(corpus.samples >= (mixes() ? 1 : 0), "a corpus of a mixture has samples");
    begins_.push_back(samples_);
    samples_ += corpus.samples;
  }
  if (samples_ < global_batch && !mixes())
    throw Error(ErrorKind::input, "the training data has " + std::to_string(samples_) + " windows, one step takes " +
                                      std::to_string(global_batch) +
                                      ". Not one step can be filled. Give more text (data.path), or lower "
                                      "train.global_batch or train.context.");
  steps_per_epoch_ = std::max<int64_t>(1, samples_ / global_batch);
}

int64_t BatchOrder::sample(int64_t step, int64_t i) const {
  NSP_REQUIRE(step >= 0 && i >= 0 && i < global_batch_, "a sample is asked for within a step");
  if (!mixes()) {
    const int64_t index = step % steps_per_epoch_ * global_batch_ + i;
    if (!shuffle_) return index;
    return permuted(index, samples_, mixed(mixed(seed_) ^ static_cast<uint64_t>(epoch(step))));
  }
  constexpr uint64_t of_steps = 0x5354455053;  // keys of steps are apart from those of epochs
  if (shuffle_) i = permuted(i, global_batch_, mixed(mixed(seed_ ^ of_steps) ^ static_cast<uint64_t>(step)));
  const MixSchedule::Place place = schedule_.at(step * global_batch_ + i);
  const int64_t samples = corpora_[place.corpus].samples, index = place.index % samples;
  if (!shuffle_) return begins_[place.corpus] + index;
  const uint64_t key = mixed(mixed(mixed(seed_) ^ static_cast<uint64_t>(place.index / samples)) ^ (place.corpus + 1));
  return begins_[place.corpus] + permuted(index, samples, key);
}

std::string BatchOrder::position(int64_t step) const {
  if (mixes()) {
    std::string text = "sample " + std::to_string(step * global_batch_);
    for (std::size_t c = 0; c < corpora_.size(); ++c) {
      const int64_t done = schedule_.count(c, step * global_batch_), samples = corpora_[c].samples;
      text += "; " + corpora_[c].name + ": epoch " + std::to_string(done / samples + 1) + ", " + std::to_string(done % samples) + " of " +
              std::to_string(samples);
    }
    return text;
  }
  const int64_t done = step % steps_per_epoch_;
  return "epoch " + std::to_string(epoch(step) + 1) + ", step " + std::to_string(done) + " of " + std::to_string(steps_per_epoch_) +
         ", sample " + std::to_string(done * global_batch_) + " of " + std::to_string(samples_);
}

std::string BatchOrder::coverage(int64_t steps) const {
  std::string text;
  for (std::size_t c = 0; c < corpora_.size(); ++c) {
    const int64_t used = schedule_.count(c, steps * global_batch_);
    char line[160];
    std::snprintf(line, sizeof line, ": %lld sequences, %.1f%% of the training, %.2f epochs in %lld steps",
                  static_cast<long long>(corpora_[c].samples),
                  100.0 * static_cast<double>(corpora_[c].weight) / static_cast<double>(schedule_.period()),
                  static_cast<double>(used) / static_cast<double>(corpora_[c].samples), static_cast<long long>(steps));
    text += (text.empty() ? "data: " : "\ndata: ") + corpora_[c].name + line;
  }
  return text;
}

}  // namespace nsp
