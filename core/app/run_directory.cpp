#include "core/app/run_directory.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/app/model_source.hpp"
#include "io/hdf5_store.hpp"

namespace nsp {
namespace fs = std::filesystem;
namespace {

// A damaged checkpoint has a line for each piece; the first one names the shard and the cause, checkpoint verify prints all.
std::string first_line(const std::string& damage) {
  const std::size_t end = damage.find('\n');
  return end == std::string::npos ? damage : damage.substr(0, end) + " More is damaged: nsp_app checkpoint verify lists all.";
}

}  // namespace

RunDirectory::RunDirectory(Session& session, World& world, const std::string& path) : path_(path) {
  std::string failure;
  ErrorKind kind = ErrorKind::usage;
  if (world.rank() == 0) {
    try {
      if (path_.empty())
        throw Error(ErrorKind::usage,
                    "run.dir is empty. A run needs a directory for its checkpoints and logs. Name one with --run.dir, or leave it out for "
                    "nsp-run.");
      std::error_code error;
      fs::create_directories(path_, error);
      if (error)
        throw Error(ErrorKind::io, "cannot make the run directory " + path_ + ": " + error.message() +
                                       ". Choose another with --run.dir, or change the permissions of its parent.");
      lock_ = std::make_unique<RunLock>(path_);
      if (!lock_->taken_over().empty()) session.log().info(lock_->taken_over());
    } catch (const Error& e) {
      failure = e.what();
      kind = e.kind();
    }
  }
  int32_t kind_of_rank0 = static_cast<int32_t>(kind);
  broadcast_now(world.comm(), world.wait(), &kind_of_rank0, sizeof kind_of_rank0, 0);
  world.agree(static_cast<ErrorKind>(kind_of_rank0), failure);
  std::error_code ignored;
  if (!fs::exists(path_ + "/lock", ignored))
    failure = "rank " + std::to_string(world.rank()) + " on host " + world.host().name + " does not see the run directory " + path_ +
              " that rank 0 made. All ranks must share it. Choose a directory on a shared file system with --run.dir.";
  world.agree(ErrorKind::usage, failure);
  if (lock_) heartbeat_ = std::thread([this] { beat(); });
}

RunDirectory::~RunDirectory() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (heartbeat_.joinable()) heartbeat_.join();
}

void RunDirectory::beat() {
  std::unique_lock guard(mutex_);
  while (!changed_.wait_for(guard, std::chrono::seconds(10), [this] { return stop_; })) {
    if (lock_->heartbeat()) continue;
    std::fprintf(stderr,
                 "nsp_app: error: another job has taken over %s/lock. Two jobs must not write into one run directory. Start this one again "
                 "with another --run.dir.\n",
                 path_.c_str());
    std::fflush(stderr);
    _exit(exit_code::error);
  }
}

ResumePoint find_resume_point(Session& session, World& world, const RunDirectory& directory, const std::string& resume) {
  Hdf5Store store(directory.checkpoints());
  int64_t step = -1;
  std::string failure;
  const bool named = resume != "auto" && resume != "never";
  if (world.rank() == 0) {
    try {
      if (named) {
        const std::string damage = open_checkpoint(resume)->verify();
        if (!damage.empty()) throw Error(ErrorKind::input, first_line(damage));
      } else {
        const std::vector<int64_t> steps = store.list();
        if (resume == "never" && !steps.empty())
          throw Error(ErrorKind::usage,
                      "run.resume = never, and " + directory.path() +
                          " holds checkpoints. A new run would overwrite them. Choose another --run.dir, or move them away.");
        for (auto s = steps.rbegin(); s != steps.rend() && step < 0; ++s) {
          std::string damage;
          try {
            damage = store.open(*s)->verify();
          } catch (const Error& e) {
            damage = e.what();
          }
          if (damage.empty()) {
            step = *s;
          } else {
            session.log().warning("the checkpoint " + store.where(*s) + " cannot be used and is passed over: " + first_line(damage));
          }
        }
        if (step < 0 && !steps.empty())
          throw Error(ErrorKind::input,
                      "none of the " + std::to_string(steps.size()) + " checkpoints in " + directory.checkpoints() +
                          " can be used (see above). Restore one from a copy, or choose another --run.dir to start anew.");
      }
    } catch (const Error& e) {
      failure = e.what();
      step = e.kind() == ErrorKind::usage ? -2 : -3;
    }
  }
  broadcast_now(world.comm(), world.wait(), &step, sizeof step, 0);
  world.agree(step == -2 ? ErrorKind::usage : ErrorKind::input, failure);
  ResumePoint out;
  if (named) out.reader = open_checkpoint(resume);
  if (step >= 0) out.reader = store.open(step);
  if (out.reader) {
    const auto it = out.reader->attributes().find("config");
    if (it != out.reader->attributes().end()) out.config = read_stored(it->second);
  }
  return out;
}

void write_run_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary);
    out << text;
    out.flush();
    if (!out)
      throw Error(ErrorKind::io,
                  "cannot write " + temporary + ". The file system is full or read-only. Make room or choose another --run.dir.");
  }
  fs::rename(temporary, path);
}

}  // namespace nsp
