// Ends a process whose collectives do not get on: a rank that died, hangs or entered another collective is otherwise waited for
// forever. It only reads the ring and never calls the transport, so it works whatever that is stuck in.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/ring.hpp"

namespace nsp {

// What a rank says when it gives up: its ring, oldest first, and what to do.
std::string timeout_report(const FixedRing& ring, int rank, const std::string& host, double timeout);

// Watches from construction to destruction, in a thread of its own. If the same collective stays the oldest unfinished one for
// `timeout` seconds of this process's running time, prints timeout_report on standard error and ends the process with code 6
// by _exit, which launchers pass on. Time in which the process itself was stopped or the machine slept does not count.
// A launcher that is told of one rank's end ends the others by SIGTERM, and soon by SIGKILL. A rank that by then has waited for
// half of the time-out gives up too, so that it still says what it waited for and ends with the same code.
class Watchdog {
 public:
  // ring: outlives the watchdog. rank, host: of this process, for the message. told_to_end: whether the process was asked to end;
  // called from the watchdog's thread. REQUIRES timeout > 0.
  Watchdog(const FixedRing& ring, int rank, std::string host, double timeout, std::function<bool()> told_to_end = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  const FixedRing& ring_;
  int rank_;
  std::string host_;
  double timeout_;
  std::function<bool()> told_to_end_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace nsp
