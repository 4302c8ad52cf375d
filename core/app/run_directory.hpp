// The run directory of a training run: made by rank 0, locked against other jobs, seen by all ranks; and the checkpoint in it
// that the run goes on from.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/app/world.hpp"
#include "core/config/config.hpp"
#include "io/run_lock.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

class RunDirectory {
 public:
  // Collective. Error(usage) if another job holds the lock or a rank does not see the directory; Error(io) if it cannot be made.
  RunDirectory(Session& session, World& world, const std::string& path);
  ~RunDirectory();
  const std::string& path() const noexcept { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

 private:
  void beat();
  std::string path_;
  std::unique_ptr<RunLock> lock_;  // rank 0
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread heartbeat_;
};

// Where a run goes on from; reader is empty for a new run.
struct ResumePoint {
  std::unique_ptr<CheckpointReader> reader;
  StoredValues config;  // of the run that wrote it
  // Rank 0: the checkpoint of another directory that this run was begun from, as an absolute path.
  std::string forked_from;
  Attributes origin() const;  // for this run's checkpoints, so that it is known when the same command is given again
};
// Collective. resume: the value of run.resume. All ranks together verify a checkpoint before it is taken; a bad one is reported and
// the one before it tried. A run that was forked from what `resume` names goes on from its own newest checkpoint.
ResumePoint find_resume_point(Session& session, World& world, const RunDirectory& directory, const std::string& resume);

}  // namespace nsp
