// Which sample of a data source is trained on when: a pure function of (samples, global batch, shuffle, seed, step), so it needs no
// state, is independent of the ranks, and a resumed run goes on exactly where it stopped.
//
// Step t (finished steps, from 0) takes G = global_batch samples. An epoch has floor(samples / G) steps; the last samples of its order
// that do not fill a step are dropped (with shuffle: others in each epoch). Without shuffle the order is that of the file.
// With shuffle it is a permutation of all samples keyed by (seed, epoch): a Feistel network on 2k bits with cycle walking
// (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002), which is a bijection and takes no memory.
//
// In a mixture of corpora, sample n = t G + i is of the corpus that mix_schedule.hpp says, and it is the next one of this corpus' own
// order: without shuffle that of its file, with shuffle a permutation of its samples for each of its epochs. A corpus begins anew when its
// samples are used up, wherever that is in a step; none is dropped. With shuffle the samples of a step are also permuted among
// themselves, so that no replica sees the same corpus at the same place of every step.
// Immutable: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/mix_schedule.hpp"

namespace nsp {

// Position of `index` in the permutation of [0, size) keyed by `key`. REQUIRES 0 <= index < size < 2^62.
int64_t permuted(int64_t index, int64_t size, uint64_t key) noexcept;

struct CorpusShare {
  std::string name;     // for the log
  int64_t samples = 0;  // that it has
  int64_t weight = 1;   // that it gives to each period of the mixture
};

class BatchOrder {
 public:
  // The samples of several corpora one after the other, or of one. Error(input) if one corpus alone does not fill a step.
  BatchOrder(std::vector<CorpusShare> corpora, int64_t global_batch, bool shuffle, uint64_t seed);
  // Error(input) if the samples do not fill one step.
  BatchOrder(int64_t samples, int64_t global_batch, bool shuffle, uint64_t seed);

  // Of a single corpus.
  int64_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  int64_t epoch(int64_t step) const noexcept { return step / steps_per_epoch_; }  // from 0
  // The i-th sample of a step. With R replicas, replica r takes its share of i as one block. REQUIRES step >= 0, 0 <= i < global batch.
  int64_t sample(int64_t step, int64_t i) const;
  // For the log and the checkpoint, after `step` finished steps: "epoch 3, step 17 of 312, sample 408 of 7493" (epochs from 1,
  // the others: finished in this epoch).
  // Of a mixture: "sample 408; data/a: epoch 1, 306 of 7493; data/b: epoch 3, 2 of 50".
  std::string position(int64_t step) const;
  // For the log: which part of each corpus `steps` steps will see, a line for each.
  std::string coverage(int64_t steps) const;

 private:
  bool mixes() const noexcept { return corpora_.size() > 1; }
  std::vector<CorpusShare> corpora_;
  std::vector<int64_t> begins_;  // first sample of each corpus
  MixSchedule schedule_;
  int64_t samples_, global_batch_, steps_per_epoch_;
  bool shuffle_;
  uint64_t seed_;
};

}  // namespace nsp
