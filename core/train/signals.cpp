#include "core/train/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>

namespace nsp {
namespace {

// A signal handler can reach nothing but objects of static storage.
std::atomic<int> received{0};
std::atomic<int64_t> received_at{0};  // ms

int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);  // async-signal-safe
  return int64_t{1000} * t.tv_sec + t.tv_nsec / 1000000;
}

extern "C" void on_signal(int signal) {
  if (received.load() == 0) {
    received_at = now_ms();
    received = signal;
    return;
  }
  // Launchers often deliver one request several times, so a further signal counts only after a while: then at once.
  if (now_ms() - received_at.load() >= 5000) _exit(128 + signal);
}

const int handled[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

}  // namespace

int received_signal() noexcept {
  return received.load();
}

SignalHandlers::SignalHandlers() {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  deaf_to_hangup_ = before.sa_handler == SIG_IGN;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int signal : handled)
    if (signal != SIGHUP || !deaf_to_hangup_) sigaction(signal, &action, nullptr);
}

SignalHandlers::~SignalHandlers() {
  for (int signal : handled)
    if (signal != SIGHUP || !deaf_to_hangup_) std::signal(signal, SIG_DFL);
  received = 0;
}

bool told_to_terminate() noexcept {
  return received.load() == SIGTERM;
}

StopRequests::StopRequests(std::string run_dir, double max_seconds, bool watch_files)
    : run_dir_(std::move(run_dir)), max_seconds_(max_seconds), watch_files_(watch_files), begin_(std::chrono::steady_clock::now()) {
  if (!watch_files_) return;
  std::error_code ignored;  // a request of an earlier run must not stop this one
  std::filesystem::remove(run_dir_ + "/STOP", ignored);
  std::filesystem::remove(run_dir_ + "/CHECKPOINT", ignored);
}

bool StopRequests::stop() const {
  return !reason().empty();
}

std::string StopRequests::reason() const {
  switch (received.load()) {
    case SIGTERM:
      return "signal TERM";
    case SIGINT:
      return "signal INT";
    case SIGUSR1:
      return "signal USR1";
    case SIGHUP:
      return "signal HUP";
    default:
      break;
  }
  if (max_seconds_ > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() > max_seconds_)
    return "the time limit train.max_hours";
  std::error_code ignored;
  if (watch_files_ && std::filesystem::exists(run_dir_ + "/STOP", ignored)) return "the file STOP";
  return "";
}

bool StopRequests::checkpoint() {
  std::error_code ignored;
  return watch_files_ && std::filesystem::remove(run_dir_ + "/CHECKPOINT", ignored);
}

}  // namespace nsp
