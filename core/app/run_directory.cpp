#include "core/app/run_directory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/app/open_checkpoint.hpp"
#include "io/hdf5_store.hpp"

namespace nsp {
namespace fs = std::filesystem;
namespace {

constexpr double longest_watch = 15;  // seconds, of a lock whose heartbeat seems to have stopped

// FNV-1a; 0 for a file that cannot be read.
uint64_t hash_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return 0;
  uint64_t hash = 14695981039346656037ULL;
  for (char c; in.get(c);) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
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
      // The others wait meanwhile.
      lock_ = std::make_unique<RunLock>(path_, std::min(longest_watch, world.timeout() / 2));
      if (!lock_->taken_over().empty()) session.log().info(lock_->taken_over());
    } catch (const Error& e) {
      failure = e.what();
      kind = e.kind();
    }
  }
  int32_t kind_of_rank0 = static_cast<int32_t>(kind);
  broadcast_now(world.comm(), world.wait(), &kind_of_rank0, sizeof kind_of_rank0, 0);
  world.agree(static_cast<ErrorKind>(kind_of_rank0), failure);
  // The lock that rank 0 has just written, not some other job's in a folder of the same name on another host's own disk.
  uint64_t lock = lock_ ? hash_of_file(path_ + "/lock") : 0;
  broadcast_now(world.comm(), world.wait(), &lock, sizeof lock, 0);
  bool seen = false;
  for (int attempt = 0; attempt < 50 && !seen; ++attempt) {  // a network file system may show it a little later
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    seen = lock != 0 && hash_of_file(path_ + "/lock") == lock;
  }
  if (!seen)
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

namespace {

// Rank 0: what the run leaves behind when it goes on from a checkpoint that is not the last.
void warn_of_later_steps(Session& session, const RunDirectory& directory, int64_t step) {
  std::string later;
  for (const int64_t other : Hdf5Store(directory.checkpoints()).list())
    if (other > step) later.append(later.empty() ? "" : ", ").append(std::to_string(other));
  if (!later.empty())
    session.log().warning("the run goes on from step " + std::to_string(step) + ", and " + directory.checkpoints() +
                          " holds later checkpoints (" + later +
                          "). They are removed when the next one is written. Move them away to keep them.");
}

constexpr const char* forked_from_key = "forked_from";

std::string forked_from(const CheckpointReader& reader) {
  const auto it = reader.attributes().find(forked_from_key);
  return it != reader.attributes().end() ? it->second : "";
}

// One name for a place, however it is written, whether or not it is still there.
fs::path plain(const std::string& place) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(place, error), error);
  return path.has_filename() ? path : path.parent_path();
}

// Steps of the newest checkpoints that the run of this directory wrote after it had been forked from `origin`.
std::vector<int64_t> steps_since_fork(CheckpointStore& store, const std::string& origin) {
  std::vector<int64_t> steps;
  if (origin.empty()) return steps;
  for (const int64_t step : newest_first(store)) {
    try {
      if (forked_from(*store.open(step)) != origin) break;
    } catch (const Error&) {
      continue;  // torn: the one before it tells
    }
    steps.push_back(step);
  }
  return steps;
}

// The same command again, as a queue gives it, goes on and does not begin at the fork each time. origin: empty but on rank 0.
std::unique_ptr<CheckpointReader> newest_since_fork(Session& session, World& world, const RunDirectory& directory,
                                                    const std::string& resume, const std::string& origin) {
  Hdf5Store store(directory.checkpoints());
  const std::vector<int64_t> steps = world.of_first_rank(steps_since_fork(store, origin));
  std::vector<PassedOver> passed_over;
  std::unique_ptr<CheckpointReader> reader = first_good(&world, store, steps, Needed::everything, passed_over);
  for (const PassedOver& bad : passed_over) session.log().warning(text_of(store, bad));
  if (reader)
    session.log().info("the run in " + directory.path() + " was forked from run.resume = " + resume +
                       " before and goes on from its own step " + std::to_string(reader->step()) +
                       ". To begin at the fork again, choose another --run.dir.");
  return reader;
}

void take_over(ResumePoint& point, Session& session, World& world, const RunDirectory& directory) {
  if (world.rank() == 0) warn_of_later_steps(session, directory, point.reader->step());
  const auto it = point.reader->attributes().find("config");
  if (it != point.reader->attributes().end()) point.config = read_stored(it->second);
}

}  // namespace

Attributes ResumePoint::origin() const {
  return forked_from.empty() ? Attributes{} : Attributes{{forked_from_key, forked_from}};
}

ResumePoint find_resume_point(Session& session, World& world, const RunDirectory& directory, const std::string& resume) {
  const bool named = resume != "auto" && resume != "never";
  const CheckpointPath place = named ? checkpoint_path(resume) : CheckpointPath{directory.checkpoints(), -1};
  ResumePoint out;
  if (named && world.rank() == 0 && plain(place.folder) != plain(directory.checkpoints())) out.forked_from = plain(resume).string();
  if (named) out.reader = newest_since_fork(session, world, directory, resume, out.forked_from);
  if (out.reader) {
    take_over(out, session, world, directory);
    return out;
  }
  Hdf5Store store(place.folder);
  const std::vector<int64_t> steps = world.of_first_rank(place.step >= 0 ? std::vector<int64_t>{place.step} : newest_first(store));
  if (resume == "never") {
    if (steps.empty()) return {};
    throw Error(ErrorKind::usage, "run.resume = never, and " + directory.path() +
                                      " holds checkpoints. A new run would overwrite them. Choose another --run.dir, or move them away.");
  }
  if (steps.empty() && named)
    throw Error(ErrorKind::input,
                "run.resume = " + resume + " holds no checkpoint. It names what the run goes on from. Correct the path, or leave it out.");
  std::vector<PassedOver> passed_over;
  out.reader = first_good(&world, store, steps, Needed::everything, passed_over);
  if (!out.reader && place.step >= 0) throw Error(ErrorKind::input, passed_over.front().why);
  for (const PassedOver& bad : passed_over) session.log().warning(text_of(store, bad));
  if (!out.reader && !steps.empty())
    throw Error(ErrorKind::input, "none of the " + std::to_string(steps.size()) + " checkpoints in " + place.folder +
                                      " can be used (see above). Restore one from a copy, or choose another --run.dir to start anew.");
  if (!out.reader) return out;
  if (world.rank() == 0 && out.forked_from.empty()) out.forked_from = forked_from(*out.reader);
  take_over(out, session, world, directory);
  return out;
}

}  // namespace nsp
