#include "core/train/metrics.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "nsp/error.hpp"

namespace nsp {

std::string lines_up_to(const std::string& path, int64_t step) {
  std::ifstream in(path);
  std::string line, kept;
  while (std::getline(in, line)) {
    if (line.empty() || line.back() != '}') continue;
    const std::size_t at = line.find("\"step\":");
    if (at != std::string::npos && std::atoll(line.c_str() + at + 7) > step) continue;
    if (line.find("\"kind\":\"end\"") != std::string::npos && at == std::string::npos) continue;
    kept += line + "\n";
  }
  return kept;
}

Metrics::Metrics(const std::string& path, int64_t resumed_step, int64_t log_every, bool progress_bar, int64_t steps, Log& log)
    : enabled_(!path.empty()), log_every_(log_every), bar_(progress_bar), steps_(steps), log_(log) {
  if (!enabled_) return;
  if (resumed_step >= 0 && std::filesystem::exists(path)) {
    const std::string kept = lines_up_to(path, resumed_step);
    const std::string temporary = path + ".tmp";
    std::ofstream(temporary) << kept;
    std::filesystem::rename(temporary, path);
  }
  out_.open(path, resumed_step >= 0 ? std::ios::app : std::ios::trunc);
  if (!out_)
    throw Error(ErrorKind::io,
                "cannot write " + path + ". The run directory is not writable. Choose another with --run.dir or change its permissions.");
}

void Metrics::record(const JsonLine& line) {
  if (enabled_) out_ << line.text() << std::endl;
}

void Metrics::flush() {
  if (enabled_) out_.flush();
}

void Metrics::step(const StepRecord& r) {
  if (!enabled_) return;
  seconds_ += r.step_seconds;
  tokens_ += r.tokens;
  recent_seconds_ = recent_seconds_ == 0 ? r.step_seconds : 0.95 * recent_seconds_ + 0.05 * r.step_seconds;
  JsonLine line;
  line.add("kind", std::string("step")).add("step", r.step).add("loss", r.loss).add("grad_norm", r.grad_norm).add("lr", r.lr);
  line.add("tokens", r.tokens)
      .add("tokens_per_second", static_cast<double>(r.tokens) / r.step_seconds)
      .add("step_ms", r.step_seconds * 1e3);
  line.add("sync_bytes", static_cast<int64_t>(r.sync_bytes)).add("replica_bytes", static_cast<int64_t>(r.replica_bytes));
  line.add("control_bytes", static_cast<int64_t>(r.control_bytes)).add("peak_share", r.peak_share);
  if (!r.synced.empty()) line.add("synced", r.synced);
  if (r.skipped_replicas > 0) line.add("skipped_replicas", r.skipped_replicas);
  out_ << line.text() << "\n";
  if (r.step % 10 == 0) out_.flush();
  if (r.skipped_replicas > 0)
    log_.warning("step " + std::to_string(r.step) + ": " + std::to_string(r.skipped_replicas) +
                 " replica(s) skipped the update, since the loss or the gradient was not finite");
  if (log_every_ > 0 && (r.step % log_every_ == 0 || r.step == steps_)) log_.info(step_text(r));
}

std::string Metrics::step_text(const StepRecord& r) const {
  const double left = recent_seconds_ * static_cast<double>(steps_ - r.step);
  char text[256];
  std::snprintf(text, sizeof text,
                "step %6lld/%lld  loss %8.4f  norm %8.4f  lr %.2e  %9.0f tok/s  peak %4.1f%%  sent %8.1f B/tok  left %02d:%02d:%02d%s%s",
                static_cast<long long>(r.step), static_cast<long long>(steps_), r.loss, r.grad_norm, r.lr,
                static_cast<double>(r.tokens) / r.step_seconds, 100.0 * r.peak_share,
                (r.sync_bytes + r.replica_bytes + r.control_bytes) / static_cast<double>(r.tokens > 0 ? r.tokens : 1),
                static_cast<int>(left) / 3600, static_cast<int>(left) / 60 % 60, static_cast<int>(left) % 60,
                r.synced.empty() ? "" : "  avg ", r.synced.c_str());
  if (!bar_) return text;
  // On a terminal a bar in front: filled by the share of steps done.
  constexpr int width = 20;
  const int filled = static_cast<int>(width * r.step / (steps_ > 0 ? steps_ : 1));
  return "[" + std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(width - filled), '.') + "] " +
         text;
}

}  // namespace nsp
