// RUN/lock: one job at a time writes into a run directory.
//
// The file is text: host, process and its start time, Slurm job, since when; its modification time is the heartbeat.
// A lock is taken over if its process is gone (same host), if it is of this same Slurm job (a requeue), or if its heartbeat
// is older than 60 s. Works over NFS: created by link(2), ages are measured by the file system's own clock. That clock may be set
// while a job runs; so a heartbeat of a strange age, old or in the future, is believed only after the lock was watched for longer
// than a beat takes, by a clock that nobody sets.
// Thread: one at a time; rank 0 only.
#pragma once

#include <string>

namespace nsp {

class RunLock {
 public:
  // Takes the lock of an existing run directory. Error(usage) if another job holds it, naming it; Error(io) if it cannot be written.
  // watch_seconds: how long a lock is watched before its age alone lets it be taken over.
  explicit RunLock(const std::string& run_dir, double watch_seconds = 15);
  // Gives the lock back, if it is still ours.
  ~RunLock() noexcept;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // To be called about every 10 s. False: another job has taken the lock over, and this one must write no more here.
  // A file system that does not answer for a while is not a lost lock.
  bool heartbeat() noexcept;
  // The empty string, or whose lock was taken over and why: a line for the log.
  const std::string& taken_over() const noexcept { return taken_over_; }

 private:
  bool create();

  std::string path_, token_, text_, taken_over_;
  int pid_;
};

}  // namespace nsp
