// Requests to stop or to checkpoint: signals, a time limit, and the files STOP and CHECKPOINT in the run directory.
//
// Handlers only set flags. A request of one rank becomes everybody's by the job vector, so all ranks act at the same step.
#pragma once

#include <chrono>
#include <string>

namespace nsp {

// Handlers for SIGTERM, SIGINT, SIGUSR1 and SIGHUP while it lives. Installed before anything slow, so that a signal during start-up
// is kept until the loop asks. A SIGHUP that is ignored stays ignored: so nohup asks for it.
class SignalHandlers {
 public:
  SignalHandlers();
  ~SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  bool deaf_to_hangup_ = false;
};

// The first signal that arrived while handlers were there; 0 = none.
int received_signal() noexcept;
// Whether such handlers have received SIGTERM, by which launchers end the ranks that are left. Thread: any.
bool told_to_terminate() noexcept;

class StopRequests {
 public:
  // max_seconds: 0 = no limit. Only `watch_files` ranks look at the files.
  StopRequests(std::string run_dir, double max_seconds, bool watch_files);

  bool stop() const;           // this rank wants the run to end with a checkpoint
  bool checkpoint();           // this rank wants a checkpoint now; true once per request
  std::string reason() const;  // "signal USR1", "time limit", "the file STOP"

 private:
  std::string run_dir_;
  double max_seconds_;
  bool watch_files_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace nsp
