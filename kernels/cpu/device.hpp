// What stands behind the opaque handles of nsp/backend.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "cpu/executor.hpp"
#include "cpu/host_memory.hpp"
#include "nsp/backend.h"

// One opened device. The first op that fails at run time makes it failed for good: what is queued behind is not run,
// its events report the failure, and further calls are refused, so that no result of a broken chain looks right.
struct nsp_device {
  explicit nsp_device(nsp::cpu::Executor& e) : executor(e) {}
  nsp::cpu::Executor& executor;
  nsp::cpu::HostMemory memory;
  std::atomic<bool> failed{false};

  void set_error(const std::string& text);
  // The text of last_error: stays where it is until the error changes and this is called again.
  const char* error();
  // Runs `work` on the executor, behind everything enqueued before; an exception out of it fails the device. Any thread.
  void enqueue(std::function<void(nsp::cpu::Context&)> work);
  void wait_for_all();  // sleeps until everything enqueued so far has run

 private:
  void fail(const std::string& text);  // keeps the first failure's text
  std::mutex mutex_;
  std::string error_, reported_;
};

// All streams share the executor's queue; a stream only says whose device it is.
struct nsp_stream {
  nsp_device* device;
};

namespace nsp::cpu {

// Counts records. Reached when the newest one is.
struct EventState {
  std::atomic<uint64_t> recorded{0}, reached{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable changed;

  int32_t query() const noexcept {
    if (reached.load(std::memory_order_acquire) < recorded.load(std::memory_order_acquire)) return 0;
    return failed.load(std::memory_order_acquire) ? -1 : 1;
  }
  void reach(uint64_t record, bool with_failure);
  int32_t wait(int64_t microseconds);
};

}  // namespace nsp::cpu

struct nsp_event {
  // Shared with the records in the queue: the handle may be destroyed while they are pending.
  std::shared_ptr<nsp::cpu::EventState> state = std::make_shared<nsp::cpu::EventState>();
};

namespace nsp::cpu {
extern const nsp_op_table kOpTable;  // ops/table.cpp
}
