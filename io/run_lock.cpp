#include "io/run_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "io/durable.hpp"
#include "io/lock_holder.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr int64_t stale_seconds = 60;
constexpr int attempts = 100;
constexpr useconds_t pause_microseconds = 20000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() noexcept {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorKind::io, "cannot write the run lock " + path + ". " + errno_text(error) +
                                 ". Check that the run directory exists, its free space and your permissions.");
}

struct Found {
  bool exists = false;
  std::string text;
  struct stat info {};
};

Found look(const std::string& path) {
  Found found;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::fstat(file.get(), &found.info) != 0) return found;
  found.exists = true;
  char buffer[4096];
  const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
  if (n > 0) found.text.assign(buffer, static_cast<std::size_t>(n));
  return found;
}

// A new file with this text; its modification time is "now" by the clock of the file system.
void write_new(const std::string& path, const std::string& text, struct stat* info) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) fail(path, errno);
  const bool written = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file.get()) == 0;
  if (!written || ::fstat(file.get(), info) != 0) {
    const int error = errno;
    remove_quietly(path);
    fail(path, error);
  }
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Why the lock may be taken over at once, or the empty string.
std::string reason_to_take(const LockHolder& holder, const LockHolder& self) {
  if (is_gone(holder, self)) return "its process is gone";
  if (!holder.job.empty() && holder.job == self.job) return "it is of this same Slurm job";
  return {};
}

// True if the lock changes - a heartbeat, another owner, gone - within that time.
bool changes(const std::string& path, const Found& before, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  do {
    ::usleep(pause_microseconds);
    const Found now = look(path);
    const timespec &a = now.info.st_mtim, &b = before.info.st_mtim;
    if (!now.exists || a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec || now.text != before.text) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// Takes a stale lock out of the way; false: try again. Several jobs may find it stale at once. Only the one that holds
// the guard may move it, and what was moved must be what was judged: else it is a new lock, and goes back.
bool remove_stale(const std::string& path, const LockHolder& self, const Found& judged, int64_t now) {
  const std::string guard = path + ".takeover", aside = path + "." + self.token + ".stale";
  struct stat info {};
  try {
    write_new(guard, lock_text(self), &info);
  } catch (const Error&) {
    const Found held = look(guard);
    if (!held.exists) return false;  // given back meanwhile; if it cannot be written at all, the attempts run out
    if (now - held.info.st_mtime > stale_seconds) remove_quietly(guard);
    return false;
  }
  bool right = false;
  if (std::rename(path.c_str(), aside.c_str()) == 0) {
    const Found moved = look(aside);
    right = moved.exists && same_file(moved.info, judged.info) && moved.text == judged.text;
    if (right || ::link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST) {
      remove_quietly(aside);
    } else {
      std::rename(aside.c_str(), path.c_str());  // no hard links here
    }
  }
  remove_quietly(guard);
  return right;
}

[[noreturn]] void refuse(const std::string& run_dir, const LockHolder& holder, int64_t age) {
  throw Error(ErrorKind::usage,
              "another job runs in " + run_dir + ". Its lock is held by " + describe(holder) + ", heartbeat " +
                  std::to_string(age < 0 ? 0 : age) +
                  " s ago. Wait for it, stop it, or choose another run.dir; a job that died elsewhere frees the directory after " +
                  std::to_string(stale_seconds) + " s.");
}

}  // namespace

RunLock::RunLock(const std::string& run_dir, double watch_seconds) : path_(run_dir + "/lock"), pid_(::getpid()) {
  const LockHolder self = this_process();
  token_ = self.token;
  text_ = lock_text(self);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (create()) return;
    const std::string probe = path_ + "." + token_ + ".probe";
    struct stat now {};
    write_new(probe, text_, &now);
    remove_quietly(probe);
    const Found found = look(path_);
    if (!found.exists) continue;  // given back meanwhile
    const LockHolder holder = parse_lock(found.text);
    const int64_t age = now.st_mtime - found.info.st_mtime;
    std::string reason = reason_to_take(holder, self);
    if (reason.empty()) {
      if (std::llabs(age) <= stale_seconds) refuse(run_dir, holder, age);
      if (changes(path_, found, watch_seconds)) continue;  // somebody is alive there, and a clock was set
      reason = "its heartbeat is " + std::to_string(std::llabs(age)) + " s " + (age > 0 ? "old" : "in the future") + " and does not move";
    }
    if (remove_stale(path_, self, found, now.st_mtime)) {
      taken_over_ = "the lock of " + describe(holder) + " was taken over: " + reason;
    } else {
      ::usleep(pause_microseconds);  // another job is at it
    }
  }
  throw Error(ErrorKind::usage, "another job starts in " + run_dir + " at the same time. It is taking the lock " + path_ +
                                    ". Wait for it, or choose another run.dir.");
}

// True if path_ now is our file; false if there is a lock already.
bool RunLock::create() {
  const std::string mine = path_ + "." + token_ + ".new";
  struct stat info {};
  write_new(mine, text_, &info);
  const int error = ::link(mine.c_str(), path_.c_str()) == 0 ? 0 : errno;
  // Over NFS a link may be made and its answer lost: the number of links tells.
  const bool linked = error == 0 || (::stat(mine.c_str(), &info) == 0 && info.st_nlink == 2);
  remove_quietly(mine);
  if (linked) return true;
  if (error == EEXIST) return false;
  // Some file systems have no hard links.
  try {
    write_new(path_, text_, &info);
    return true;
  } catch (const Error&) {
    if (look(path_).exists) return false;
    throw;
  }
}

bool RunLock::heartbeat() noexcept {
  try {
    const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return errno != ENOENT || create();  // removed by hand: taken again, unless another job did so first
    char buffer[4096];
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0) return true;
    if (std::string(buffer, static_cast<std::size_t>(n)) != text_) return false;
    ::futimens(file.get(), nullptr);
    return true;
  } catch (...) {
    return true;  // the file system failed, nobody took the lock
  }
}

RunLock::~RunLock() noexcept {
  if (::getpid() != pid_) return;  // a forked child
  try {
    if (look(path_).text == text_) remove_quietly(path_);
  } catch (...) {  // out of memory: the lock is stale in a minute
  }
}

}  // namespace nsp
