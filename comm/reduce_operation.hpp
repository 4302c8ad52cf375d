// The collectives that sum: reduce_scatter, and all_reduce as a reduce_scatter whose results go to all ranks block by block.
//
// Direct exchange: every rank sends chunk j of its input to rank j; rank j adds the blocks of all ranks in rank order as
// soon as it has them all, and (all_reduce) sends each sum to everybody. All of it is pipelined over a window of blocks.
#pragma once

#include <vector>

#include "comm/operation.hpp"

namespace nsp {

class ReduceOperation final : public Operation {
 public:
  // in [sum counts], out [counts[rank]]; gather: the result replaces all of in, and out is not used.
  ReduceOperation(const BlockPlan& plan, TensorView in, const std::vector<int64_t>& counts, TensorView out, bool gather);
  int64_t staging_bytes(bool staged) const override;
  void place(char* staging, bool staged) override;
  void begin(MessagePort& port) override;
  void finished(MessagePort& port, const Message& message) override;

 private:
  int64_t count(int j) const noexcept { return offset_[j + 1] - offset_[j]; }
  int64_t blocks(int j) const noexcept { return blocks_of(count(j), plan_.block); }
  int64_t block_bytes(int j, int64_t b) const noexcept;
  char* block_at(int j, int64_t b) const noexcept;  // of in
  char* own_result(int64_t b) const noexcept;
  char* slot(int64_t b, int peer) const noexcept;
  int64_t slots_bytes() const noexcept;
  void post_slot(MessagePort& port, int64_t b);
  void send_next(MessagePort& port, int peer);
  void sum_ready(MessagePort& port);

  BlockPlan plan_;
  DType dtype_;
  int64_t item_;  // bytes an element
  char* memory_;  // in and out as the caller gave them
  char* result_;
  bool gather_;
  std::vector<int64_t> offset_;  // [size + 1] elements
  int64_t window_ = 0;           // slots that there are: no more than own blocks
  char* in_ = nullptr;           // host addresses
  char* out_ = nullptr;
  char* slots_ = nullptr;           // [window][size - 1][block] contributions of the others
  std::vector<int64_t> sent_;       // [size] blocks of chunk j posted
  std::vector<int> arrived_;        // [window] contributions that are there
  std::vector<const void*> terms_;  // [size] inputs of the sum under way
  int64_t next_sum_ = 0;
};

}  // namespace nsp
