// Who holds a run lock: the text of the file, and whether that process still runs.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

struct LockHolder {
  std::string host, boot;  // boot: the kernel's id of this start of the machine, if it has one
  int64_t pid = 0;
  std::string start;  // of the process, in clock ticks since boot: a pid alone may have been given to another process
  std::string job;    // SLURM_JOB_ID or empty
  std::string since;  // UTC
  std::string token;  // random; tells two locks of the same process apart
};

LockHolder this_process();
std::string lock_text(const LockHolder& holder);
// Missing lines leave members empty: a damaged lock still has an age.
LockHolder parse_lock(const std::string& text);
// True only if it is certain: the holder was on this host and its process does not run any more.
bool is_gone(const LockHolder& holder, const LockHolder& self);
// "process 123 on host n1 (Slurm job 7), since 2026-01-31T12:00:00Z"
std::string describe(const LockHolder& holder);

}  // namespace nsp
