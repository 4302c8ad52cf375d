#include "core/train/event_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace nsp {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t most_waiting = std::size_t{64} << 10;
constexpr auto flush_interval = std::chrono::seconds(2);
constexpr const char* prefix = "events.out.tfevents.";

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Seconds for a name that sorts behind all event files of the folder.
long long time_for_name(const fs::path& folder) {
  auto time = static_cast<long long>(wall_time());
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) time = std::max(time, std::atoll(name.c_str() + std::strlen(prefix)) + 1);
  }
  return time;
}

}  // namespace

EventFile::EventFile(std::string folder, int64_t first_step, Log& log) : folder_(std::move(folder)), log_(log) {
  try {
    fs::create_directories(folder_);
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    char time[32];
    std::snprintf(time, sizeof time, "%010lld", time_for_name(folder_));
    path_ = (fs::path(folder_) / (prefix + std::string(time) + "." + host + "." + std::to_string(getpid()))).string();
  } catch (const fs::filesystem_error& error) {
    path_ = folder_;
    fail(error.code().message());
    return;
  }
  descriptor_ = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail(std::strerror(errno));
    return;
  }
  waiting_ = version_record(wall_time()) + start_record(wall_time(), first_step);
  flush();
}

EventFile::~EventFile() {
  flush();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::add(int64_t step, std::span<const Scalar> scalars) {
  if (descriptor_ < 0) return;
  waiting_ += scalars_record(wall_time(), step, scalars);
  if (waiting_.size() >= most_waiting || std::chrono::steady_clock::now() - flushed_ >= flush_interval) flush();
}

void EventFile::flush() {
  const char* from = waiting_.data();
  std::size_t left = waiting_.size();
  while (descriptor_ >= 0 && left > 0) {
    const ssize_t written = ::write(descriptor_, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string reason = std::strerror(errno);
      ::close(std::exchange(descriptor_, -1));
      fail(reason);
      break;
    }
    from += written;
    left -= static_cast<std::size_t>(written);
  }
  waiting_.clear();
  flushed_ = std::chrono::steady_clock::now();
}

void EventFile::fail(const std::string& what) {
  log_.warning("cannot write " + path_ + ": " + what +
               ". Training goes on without files for TensorBoard until the run is started again; metrics.jsonl holds the same numbers.");
}

}  // namespace nsp
