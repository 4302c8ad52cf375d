// Which sample of a data source is trained on when: a pure function of (samples, global batch, shuffle, seed, step), so it needs no
// state, is independent of the ranks, and a resumed run goes on exactly where it stopped.
//
// Step t (finished steps, from 0) takes G = global_batch samples. An epoch has floor(samples / G) steps; the last samples of its order
// that do not fill a step are dropped (with shuffle: others in each epoch). Without shuffle the order is that of the file.
// With shuffle it is a permutation of all samples keyed by (seed, epoch): a Feistel network on 2k bits with cycle walking
// (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002), which is a bijection and takes no memory.
// Immutable: any thread.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

// Position of `index` in the permutation of [0, size) keyed by `key`. REQUIRES 0 <= index < size < 2^62.
int64_t permuted(int64_t index, int64_t size, uint64_t key) noexcept;

class BatchOrder {
 public:
  // Error(input) if the samples do not fill one step.
  BatchOrder(int64_t samples, int64_t global_batch, bool shuffle, uint64_t seed);

  int64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  int64_t epoch(int64_t step) const noexcept { return step / steps_per_epoch_; }  // from 0
  // The i-th sample of a step. With R replicas, replica r takes its share of i as one block. REQUIRES step >= 0, 0 <= i < global batch.
  int64_t sample(int64_t step, int64_t i) const;
  // For the log and the checkpoint, after `step` finished steps: "epoch 3, step 17 of 312, sample 408 of 7493" (epochs from 1,
  // the others: finished in this epoch).
  std::string position(int64_t step) const;

 private:
  int64_t samples_, global_batch_, steps_per_epoch_;
  bool shuffle_;
  uint64_t seed_;
};

}  // namespace nsp
