#include "cpu/device.hpp"

#include <chrono>
#include <exception>

void nsp_device::set_error(const std::string& text) {
  std::lock_guard lock(mutex_);
  error_ = text;
}

const char* nsp_device::error() {
  std::lock_guard lock(mutex_);
  if (reported_ != error_) reported_ = error_;
  return reported_.c_str();
}

void nsp_device::fail(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (failed.load(std::memory_order_relaxed)) return;
  error_ = text;
  failed.store(true, std::memory_order_release);
}

void nsp_device::enqueue(std::function<void(nsp::cpu::Context&)> work) {
  executor.submit([this, work = std::move(work)](nsp::cpu::Context& context) {
    if (failed.load(std::memory_order_acquire)) return;
    try {
      context.scratch.reset();
      work(context);
    } catch (const std::exception& e) {
      fail(e.what());
    } catch (...) {
      fail("an op failed without a text");
    }
  });
}

void nsp_device::wait_for_all() {
  nsp::cpu::EventState event;
  event.recorded = 1;
  executor.submit([&event](nsp::cpu::Context&) { event.reach(1, false); });
  while (event.wait(1000000) == 0) {  // both hold the mutex: when wait() says so, reach() has left the object
  }
}

namespace nsp::cpu {

void EventState::reach(uint64_t record, bool with_failure) {
  // Under the mutex, or a waiter between its test and its sleep would miss the call.
  std::lock_guard lock(mutex);
  failed.store(with_failure, std::memory_order_release);
  reached.store(record, std::memory_order_release);
  changed.notify_all();
}

int32_t EventState::wait(int64_t microseconds) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::microseconds(microseconds), [this] { return query() != 0; });
  return query();
}

}  // namespace nsp::cpu
