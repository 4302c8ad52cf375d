// Streams and events of a fake device: threads that work late and in no hurry.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace nsp::test {

// One record of an event. Shared by the event (its newest record), by the stream that will reach it and by the streams that
// wait for it: any of them may go first, hence shared_ptr.
class FakePoint {
 public:
  void reach();
  bool reached() const;
  bool wait_for(std::chrono::microseconds time) const;  // true: reached
  void wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool reached_ = false;
};

class FakeEvent {
 public:
  void set(std::shared_ptr<FakePoint> point);
  std::shared_ptr<FakePoint> newest() const;  // nullptr: never recorded

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<FakePoint> point_;
};

// A queue and the thread that empties it. About one task in eight is delayed at random (a sleep costs at least some 55 us of
// timer slack, so delaying all would make tests slow and find no more).
class FakeQueue {
 public:
  explicit FakeQueue(unsigned seed);
  ~FakeQueue();  // runs what is queued, then ends the thread
  FakeQueue(const FakeQueue&) = delete;
  FakeQueue& operator=(const FakeQueue&) = delete;

  // uses: the addresses that the task will touch.
  void push(std::function<void()> task, std::vector<const void*> uses);
  // Whether a task that is queued or running uses an address in [start, start + bytes).
  bool uses(const void* start, uint64_t bytes) const;

 private:
  struct Task {
    std::function<void()> run;
    std::vector<const void*> uses;
  };
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one stays here while it runs
  bool stop_ = false;
  std::minstd_rand random_;  // of the thread alone
  std::thread thread_;       // last: it starts with the rest in place
};

}  // namespace nsp::test
