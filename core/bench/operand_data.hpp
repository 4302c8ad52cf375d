// The tensors of a case in device memory: several sets, so that calls that rotate over them meet memory and not a cache.
#pragma once

#include <vector>

#include "core/bench/op_case.hpp"

namespace nsp::bench {

// Views into one allocation, filled with ordinary numbers. Values are made by the host and copied, so no op of the backend is needed.
class OperandData {
 public:
  // working_set: bytes that the calls which follow each other are to touch before a set comes again; at least one set, at most 4096.
  // Error(memory) where device memory has no room for them.
  OperandData(Stream& stream, const OpCase& op_case, int64_t working_set);
  ~OperandData();  // waits for what still uses it
  OperandData(const OperandData&) = delete;
  OperandData& operator=(const OperandData&) = delete;
  std::size_t sets() const { return views_.size(); }
  const std::vector<TensorView>& set(std::size_t i) const { return views_[i % views_.size()]; }

 private:
  Stream& stream_;
  Buffer buffer_;
  std::vector<std::vector<TensorView>> views_;
};

// Until all that is queued in the stream is done.
void finish(Stream& stream);

}  // namespace nsp::bench
