// What the exchange engine needs from the thing that carries bytes: non-blocking messages between the ranks of one group.
//
// Messages of one (sender, receiver, tag) arrive in the order they were sent; those of different tags may overtake each
// other, and completions are reported in any order. Thread: one thread at a time per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nsp/error.hpp"

namespace nsp {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual int world_rank(int rank) const noexcept = 0;  // the same process in the whole job; for messages

  // Start a message of `bytes` (1 ... 2^30) to or from `peer`, 0 <= tag < 2^28. The memory stays valid and, for a receive,
  // untouched until test_some reports `id`. Never block. Throw Error(comm).
  virtual void isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) = 0;
  virtual void irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) = 0;
  // Appends the ids of messages that completed since the last call. Never blocks. Throws Error(comm), also when a message
  // had not the size that its receive was posted for: then the ranks have entered different collectives.
  virtual void test_some(std::vector<uint32_t>& finished) = 0;

  // Collective over the group, blocking: ranks of equal color (>= 0) form a group, ordered by key.
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;
  // Ends the whole job with this exit code. Does not return.
  [[noreturn]] virtual void abort(int code, const std::string& reason) = 0;
};

inline constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;
inline constexpr int kMaxTag = (1 << 28) - 1;

}  // namespace nsp
