// The one host wait, and the small blocking helpers on top of it.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "nsp/communicator.hpp"

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kLongestEventWait{100'000};  // at once, while no communicator has anything to do
// Fruitless rounds (about a microsecond each) before a wait starts to sleep between rounds. A core that more threads want
// than there are is then left to the thread that computes, while short waits are answered at once.
constexpr int kSpinsForWork = 4000;
// Less for an event: its sleep ends with the event itself, so it costs no latency, and somebody is surely computing.
constexpr int kSpinsForEvent = 500;
// After something moved: the next message often follows, but over a slow network it does not, and spinning would take the core.
constexpr int kSpinsAfterMove = 200;
// The sleep grows while nothing moves: what it adds to a wait stays a small part of it.
constexpr auto kShortNap = std::chrono::microseconds(50);
constexpr auto kLongNap = std::chrono::microseconds(400);

}  // namespace

void HostWait::add(Progressing* member) {
  NSP_REQUIRE(member != nullptr, "a member is added to the host wait");
  members_.push_back(member);
}

void HostWait::remove(Progressing* member) noexcept {
  std::erase(members_, member);
}

bool HostWait::progress() {
  bool busy = false;
  for (Progressing* member : members_) busy = member->progress() || busy;
  if (busy || flying_) see_flight();
  return busy;
}

// What was on its way at the last look is taken to have been on its way until now.
void HostWait::see_flight() {
  const Clock::time_point now = Clock::now();
  if (flying_) times_.in_flight += std::chrono::duration<double>(now - looked_).count();
  looked_ = now;
  flying_ = std::any_of(members_.begin(), members_.end(), [](const Progressing* member) { return member->in_flight(); });
}

template <class Done>
void HostWait::wait_until(Done done, const Event* event) {
  const auto moves = [&] {
    uint64_t sum = 0;
    for (const Progressing* member : members_) sum += member->moves();
    return sum;
  };
  int spins = event != nullptr ? kSpinsForEvent : kSpinsForWork;
  std::chrono::microseconds nap = kShortNap;
  uint64_t moved = moves();
  while (!done()) {
    const bool busy = progress();
    if (const uint64_t now = moves(); now != moved) {
      moved = now;
      spins = std::max(spins, kSpinsAfterMove);
      nap = kShortNap;
    } else if (!busy && event != nullptr) {
      event->wait_for(kLongestEventWait.count());
    } else if (!busy && !done()) {
      throw Error(ErrorKind::internal,
                  "a wait would never end. The work belongs to a communicator that was not added to the host wait, or was closed. "
                  "This is a bug in nsp or in a plug-in; please report it.");
    } else if (spins > 0) {
      --spins;
      sched_yield();
    } else {
      if (event != nullptr) {
        event->wait_for(nap.count());
      } else {
        std::this_thread::sleep_for(nap);
      }
      nap = std::min(2 * nap, kLongNap);
    }
  }
}

void HostWait::wait(Work& work) {
  std::optional<Clock::time_point> started;
  wait_until(
      [&] {
        if (work.done()) return true;
        if (!started && work.started()) started = Clock::now();
        return false;
      },
      nullptr);
  if (started) times_.exposed += std::chrono::duration<double>(Clock::now() - *started).count();
}

void HostWait::wait(const Event& event) {
  wait_until([&] { return event.query(); }, &event);
}

void all_reduce_now(Communicator& comm, HostWait& wait, std::span<double> values) {
  wait.wait(comm.all_reduce(TensorView(values.data(), DType::f64, {static_cast<int64_t>(values.size())}), {}));
}

void broadcast_now(Communicator& comm, HostWait& wait, void* data, int64_t bytes, int root) {
  wait.wait(comm.broadcast(TensorView(data, DType::u8, {bytes}), root, {}));
}

std::vector<char> gather_now(Communicator& comm, HostWait& wait, const void* data, int64_t bytes) {
  std::vector<char> all(static_cast<size_t>(bytes) * comm.size());
  char* own = all.data() + comm.rank() * bytes;
  if (bytes > 0) std::memcpy(own, data, static_cast<size_t>(bytes));
  wait.wait(comm.all_gather(TensorView(own, DType::u8, {bytes}), std::vector<int64_t>(comm.size(), bytes),
                            TensorView(all.data(), DType::u8, {bytes * comm.size()}), {}));
  return all;
}

void barrier_now(Communicator& comm, HostWait& wait) {
  double nothing = 0;
  all_reduce_now(comm, wait, {&nothing, 1});
}

}  // namespace nsp
