#include "comm/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string line_of(const FixedRing::Entry& entry, Clock::time_point now) {
  char text[256];
  std::snprintf(text, sizeof text, "  %8llu  %-12s %-14s %12lld %-6s tag %-8u ", static_cast<unsigned long long>(entry.record.sequence),
                entry.record.communicator.c_str(), entry.record.op, static_cast<long long>(entry.record.count), name_of(entry.record.dtype),
                entry.record.tag);
  std::string line = text;
  if (entry.finished) {
    std::snprintf(text, sizeof text, "done in %.3f s, %.1f s ago\n", seconds_between(entry.entered, entry.ended),
                  seconds_between(entry.ended, now));
    return line + text;
  }
  std::snprintf(text, sizeof text, "NOT DONE after %.1f s, waits for ", seconds_between(entry.entered, now));
  return line + text + entry.record.waiting_for + "\n";
}

}  // namespace

std::string timeout_report(const FixedRing& ring, int rank, const std::string& host, double timeout) {
  const std::vector<FixedRing::Entry> entries = ring.entries();
  const Clock::time_point now = Clock::now();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", timeout);
  const auto oldest = std::find_if(entries.begin(), entries.end(), [](const FixedRing::Entry& entry) { return !entry.finished; });
  std::string text = "nsp_app: error: rank " + std::to_string(rank) + " on " + host +
                     ": communication did not get on for comm.timeout = " + seconds + " s. ";
  if (oldest != entries.end()) {
    text += std::string(oldest->record.op) + " on communicator '" + oldest->record.communicator + "' (tag " +
            std::to_string(oldest->record.tag) + ") waits for " + oldest->record.waiting_for + ". ";
  }
  text +=
      "A rank that is waited for has died, hangs, is cut off, is much slower, has entered another collective, or waits for a third one "
      "itself.\n";
  text += "The collectives that rank " + std::to_string(rank) + " entered last (sequence, communicator, op, elements, dtype, tag):\n";
  for (const FixedRing::Entry& entry : entries) text += line_of(entry, now);
  text +=
      "What to do: look for the rank whose lines differ, or that prints none; check that its host and its network are up. Raise "
      "comm.timeout if "
      "a rank is only slow. The same command resumes from the last checkpoint.\n";
  return text;
}

Watchdog::Watchdog(const FixedRing& ring, int rank, std::string host, double timeout, std::function<bool()> told_to_end)
    : ring_(ring), rank_(rank), host_(std::move(host)), timeout_(timeout), told_to_end_(std::move(told_to_end)) {
  NSP_REQUIRE(timeout > 0, "a time-out is longer than nothing");
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const double tick = std::clamp(timeout_ / 10, 0.01, 0.25);  // launchers leave a second between SIGTERM and SIGKILL
  uint64_t watched = 0;                                       // the collective that has been the oldest for `stuck` seconds
  double stuck = 0;
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_changed_.wait_for(lock, std::chrono::duration<double>(tick), [this] { return stop_; })) {
    const Clock::time_point now = Clock::now();
    // A tick that took much longer means that the process was stopped: the others may have waited, this one has not.
    const double passed = std::min(seconds_between(last, now), 2 * tick);
    last = now;
    const uint64_t oldest = ring_.oldest_unfinished();
    stuck = oldest == watched ? stuck + passed : 0;
    watched = oldest;
    const bool told = told_to_end_ && told_to_end_();
    if (oldest == 0 || stuck < (told ? timeout_ / 2 : timeout_)) continue;
    const std::string text = timeout_report(ring_, rank_, host_, timeout_);
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
    // The first rank that ends makes the launcher end the others; those that wait since a moment later have the time to say for whom.
    if (!told) std::this_thread::sleep_for(std::chrono::duration<double>(std::min(1.0, timeout_ / 3)));
    _exit(exit_code::timeout);
  }
}

}  // namespace nsp
