#include "tests/support/fake_device_stream.hpp"

#include <chrono>
#include <utility>

namespace nsp::test {

void FakePoint::reach() {
  {
    std::lock_guard lock(mutex_);
    reached_ = true;
  }
  changed_.notify_all();
}

bool FakePoint::reached() const {
  std::lock_guard lock(mutex_);
  return reached_;
}

bool FakePoint::wait_for(std::chrono::microseconds time) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return reached_; });
}

void FakePoint::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
}

void FakeEvent::set(std::shared_ptr<FakePoint> point) {
  std::lock_guard lock(mutex_);
  point_ = std::move(point);
}

std::shared_ptr<FakePoint> FakeEvent::newest() const {
  std::lock_guard lock(mutex_);
  return point_;
}

FakeQueue::FakeQueue(unsigned seed) : random_(seed), thread_([this] { loop(); }) {}

FakeQueue::~FakeQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeQueue::push(std::function<void()> task, std::vector<const void*> uses) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(task), std::move(uses)});
  }
  changed_.notify_all();
}

bool FakeQueue::uses(const void* start, uint64_t bytes) const {
  const auto lo = reinterpret_cast<uintptr_t>(start);
  std::lock_guard lock(mutex_);
  for (const Task& task : tasks_) {
    for (const void* p : task.uses) {
      const auto address = reinterpret_cast<uintptr_t>(p);
      if (address >= lo && address - lo < bytes) return true;
    }
  }
  return false;
}

void FakeQueue::loop() {
  for (;;) {
    std::function<void()> run;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      run = std::move(tasks_.front().run);
    }
    if (random_() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    run();
    run = nullptr;  // what it holds goes before the task counts as done
    std::lock_guard lock(mutex_);
    tasks_.pop_front();
  }
}

}  // namespace nsp::test
