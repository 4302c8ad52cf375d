// The exchange between shards of the sequence and shards of the heads: pack, one all_to_all, unpack.
//
// Staging holds, for every destination in rank order, the blocks of all parts of the call; what stays on this rank is copied
// directly. A key/value head that several ranks hold is sent to each of them; what comes back from them is summed in the
// staging, in rank order. Sizes are known before the first step, so nothing is allocated later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nsp/parallel_strategy.hpp"

namespace nsp {

// What one exchange may have to hold at most, in elements, on the rank that needs most: the query heads and both key/value
// tensors of micro_batch sequences, once as they leave and once as they arrive.
struct ExchangeSizes {
  int64_t sequence_side = 0;  // longest token shard, the heads of all ranks
  int64_t heads_side = 0;     // all tokens, largest head shard
  int64_t bytes(DType dtype) const { return (sequence_side + heads_side) * static_cast<int64_t>(size_of(dtype)); }
};
ExchangeSizes exchange_sizes(const ParallelPlan& plan, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t micro_batch);

class HeadExchanger {
 public:
  explicit HeadExchanger(const ParallelContext& context);
  void sequence_to_heads(std::span<const HeadExchange> parts) { exchange(parts, true); }
  void heads_to_sequence(std::span<const HeadExchange> parts) { exchange(parts, false); }
  int64_t staging_bytes() const noexcept { return staging_.bytes(); }

 private:
  // Where the blocks of a call begin in staging.
  struct Arrived {
    char* base;
    std::vector<std::vector<int64_t>> offset;  // [peer][part], elements; -1: not there
  };
  void exchange(std::span<const HeadExchange> parts, bool to_heads);
  Arrived send(std::span<const HeadExchange> parts, bool to_heads);
  void place(const HeadExchange& part, std::size_t index, bool to_heads, const Arrived& arrived);
  void sum_replicas(const HeadExchange& part, std::size_t index, const Arrived& arrived);
  void check(std::span<const HeadExchange> parts) const;
  bool is_query(const HeadExchange& part) const { return part.sequence.size(2) == context_.heads; }
  bool replicated(const HeadExchange& part) const { return !is_query(part) && degree_ > context_.kv_heads; }
  std::pair<int64_t, int64_t> heads_of(const HeadExchange& part, int peer) const;
  TensorView sequence_block(const HeadExchange& part, int peer) const;
  TensorView heads_block(const HeadExchange& part, int peer) const;

  const ParallelContext context_;
  const int degree_;
  const std::vector<HeadShare> map_;
  const ExchangeSizes sizes_;
  Buffer staging_;
};

}  // namespace nsp
