// Who does what, decided before the first allocation.
//
// Ranks form replicas of equal size; inside a replica the strategy's axes. Rank r is position r mod S of replica r / S: the
// replicate axis is outermost, the sequence axis innermost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/module.hpp"
#include "nsp/parallel_strategy.hpp"

namespace nsp {

struct JobPlan {
  int ranks = 1;
  int replicas = 1;
  int replica_size = 1;
  ParallelPlan parallel;
  int64_t global_batch = 1;     // sequences a step over all replicas
  int64_t context = 1;          // tokens of a sequence
  int64_t micro_batch = 1;      // sequences of a micro-step, at most
  std::vector<int64_t> shares;  // sequences a step of each replica; sum = global_batch
  DType dtype = DType::f32;     // of weights as forward reads them, and of activations
  std::string threads = "1";    // compute threads of each rank, as by_rank
  std::string backend;          // of each rank, as by_rank
  std::string plugins;          // in use, as --plugins names them
  int64_t memory_budget = 0;    // bytes a rank may use, as found when the plan was made; it decides `auto` choices

  int replica_of(int rank) const { return rank / replica_size; }
  int position_of(int rank) const { return rank % replica_size; }
  std::vector<double> weights() const;        // share / global_batch of each replica
  int64_t first_sequence(int replica) const;  // of the step's block
  // Sizes of the largest micro-step at this position.
  BatchShape shape(int position, const HeadShare& heads, bool splits_heads) const;
  std::vector<Range> owned(const ParamTable& table, int position) const;

  // What a resume compares, and the memory budget, which one that reuses the plan takes over; stored in the checkpoint. One
  // "key = value" a line.
  std::string text() const;
  // What a resume compares, for people: many shares as runs.
  std::string short_text() const;

 private:
  std::string text_with(const std::string& shares_text) const;
};

// The dtype that train.dtype names.
DType compute_dtype(const std::string& name);

// The lines of JobPlan::text() as key -> value.
std::map<std::string, std::string> plan_values(const std::string& text);

// A value for each rank, in rank order, as runs: "cpu_native" if it is the same for all, else "cpu_native*8 cpu_x86_64_v3*8".
std::string by_rank(const std::vector<std::string>& values);
// What such a text says of a rank; empty if it says nothing.
std::string value_of_rank(const std::string& text, int rank);

// "6 6 5"; more than 16 of them as runs: "4094 of 6, 2 of 5".
std::string shares_text(const std::vector<int64_t>& shares);

// Near-equal integer shares >= 1. Error(usage) if there are fewer sequences than replicas.
std::vector<int64_t> equal_shares(int64_t global_batch, int replicas);

// The largest micro-batch that is worth having: at most the share, about `target_tokens` tokens a micro-step, in near-equal pieces.
int64_t auto_micro_batch(int64_t share, int64_t local_tokens);

}  // namespace nsp
