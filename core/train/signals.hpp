// Requests to stop or to checkpoint: signals, a time limit, and the files STOP and CHECKPOINT in the run directory.
//
// Handlers only set flags. A request of one rank becomes everybody's by the job vector, so all ranks act at the same step.
#pragma once

#include <chrono>
#include <string>

namespace nsp {

class StopRequests {
 public:
  // Installs handlers for SIGTERM, SIGINT and SIGUSR1. max_seconds: 0 = no limit. Only `watch_files` ranks look at the files.
  StopRequests(std::string run_dir, double max_seconds, bool watch_files);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

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
