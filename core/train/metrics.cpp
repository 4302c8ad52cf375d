#include "core/train/metrics.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

Metrics::Metrics(const std::string& path, int64_t resumed_step, int64_t log_every, int64_t steps, Log& log)
    : path_(path), resumed_step_(resumed_step), log_every_(log_every), steps_(steps), log_(log) {
  if (path_.empty()) return;
  std::error_code unreadable;
  if (resumed_step >= 0 && std::filesystem::exists(path_, unreadable)) replace_file(path_, lines_up_to(path_, resumed_step));
  out_ = std::make_unique<LineFile>(path_, resumed_step >= 0);
}

Metrics::~Metrics() {
  flush();
  if (waits_ || (out_ && out_->given_up() > 0))
    log_.warning("the end of " + path_ + " is missing: it could not be written. The checkpoints are not concerned.");
}

void Metrics::write_events(const std::string& folder) {
  if (out_) events_ = std::make_unique<EventFile>(folder, resumed_step_ + 1, log_);
}

void Metrics::show_progress(StatusLine& line) {
  if (out_) progress_ = std::make_unique<Progress>(line, steps_);
}

void Metrics::record(const JsonLine& line) {
  if (!out_) return;
  out_->add(line.text());
  flush();
}

void Metrics::flush() {
  if (!out_) return;
  const bool waited = waits_;
  waits_ = !out_->flush();
  if (waits_ && !waited)
    log_.warning("cannot write " + path_ + ": " + out_->failure() +
                 ". Training goes on, and lines wait in memory until they can be written. Make room in the run directory.");
  if (waited && !waits_) log_.info(path_ + " is written again" + (out_->given_up() > 0 ? ", with a gap." : ", without a gap."));
  if (events_) events_->flush();
}

void Metrics::evaluation(int64_t step, double loss, int64_t tokens, int64_t bytes) {
  record(JsonLine().add("kind", std::string("eval")).add("step", step).add("val_loss", loss).add("tokens", tokens).add("bytes", bytes));
  if (!events_) return;
  const Scalar scalars[] = {{"eval/val_loss", loss}};
  events_->add(step, scalars);
  events_->flush();
}

void Metrics::checkpoint(int64_t step, double seconds, int64_t size, int64_t bytes) {
  record(JsonLine().add("kind", std::string("checkpoint")).add("step", step).add("seconds", seconds).add("size", size).add("bytes", bytes));
  if (!events_) return;
  const Scalar scalars[] = {{"checkpoint/seconds", seconds}, {"checkpoint/size", static_cast<double>(size)}};
  events_->add(step, scalars);
  events_->flush();
}

void Metrics::step(const StepRecord& r) {
  if (!out_) return;
  seconds_ += r.step_seconds;
  tokens_ += r.tokens;
  recent_seconds_ = recent_seconds_ == 0 ? r.step_seconds : 0.95 * recent_seconds_ + 0.05 * r.step_seconds;
  JsonLine line;
  line.add("kind", std::string("step")).add("step", r.step).add("loss", r.loss).add("grad_norm", r.grad_norm).add("lr", r.lr);
  line.add("tokens", r.tokens).add("tokens_per_second", r.tokens_per_second()).add("step_ms", r.step_seconds * 1e3);
  line.add("sync_bytes", static_cast<int64_t>(r.sync_bytes)).add("replica_bytes", static_cast<int64_t>(r.replica_bytes));
  line.add("control_bytes", static_cast<int64_t>(r.control_bytes)).add("peak_share", r.peak_share);
  if (!r.synced.empty()) line.add("synced", r.synced);
  if (r.skipped_replicas > 0) line.add("skipped_replicas", r.skipped_replicas);
  out_->add(line.text());
  if (r.step % 10 == 0) flush();
  if (events_) {
    const Scalar scalars[] = {{"train/loss", r.loss},
                              {"train/grad_norm", r.grad_norm},
                              {"train/lr", r.lr},
                              {"train/skipped_replicas", static_cast<double>(r.skipped_replicas)},
                              {"speed/tokens_per_second", r.tokens_per_second()},
                              {"speed/step_ms", r.step_seconds * 1e3},
                              {"speed/peak_share", r.peak_share},
                              {"bytes/sync", r.sync_bytes},
                              {"bytes/replica", r.replica_bytes},
                              {"bytes/control", r.control_bytes}};
    events_->add(r.step, scalars);
  }
  if (r.skipped_replicas > 0)
    log_.warning("step " + std::to_string(r.step) + ": " + std::to_string(r.skipped_replicas) +
                 " replica(s) skipped the update, since the loss or the gradient was not finite");
  const double left = seconds_left(r);
  add_to_line(r);
  if (log_every_ > 0 && (r.step % log_every_ == 0 || r.step == steps_)) {
    log_.info(step_text(r, left));
    since_line_ = {};
  }
  if (progress_) progress_->update(r, left);
}

// Steps as they are now, and what lay beside them (evaluations, checkpoints) as often as until now.
double Metrics::seconds_left(const StepRecord& r) {
  const auto now = std::chrono::steady_clock::now();
  const double before = static_cast<double>(seen_++);
  if (before == 0) began_ = now;
  if (before == 1) first_seconds_ = seconds_ - r.step_seconds;
  const double beside = before > 0 ? std::chrono::duration<double>(now - began_).count() - (seconds_ - first_seconds_) : 0;
  return (recent_seconds_ + std::max(0.0, beside) / std::max(1.0, before)) * static_cast<double>(steps_ - r.step);
}

void Metrics::add_to_line(const StepRecord& r) {
  StepRecord& line = since_line_;
  line.tokens += r.tokens;
  line.step_seconds += r.step_seconds;
  line.sync_bytes += r.sync_bytes + r.replica_bytes + r.control_bytes;
  line.peak_share += r.peak_share * r.step_seconds;
  if (!r.synced.empty() && ("," + line.synced + ",").find("," + r.synced + ",") == std::string::npos)
    line.synced += (line.synced.empty() ? "" : ",") + r.synced;
}

std::string Metrics::step_text(const StepRecord& r, double left) const {
  const StepRecord& line = since_line_;
  char text[256];
  std::snprintf(text, sizeof text,
                "step %6lld/%lld  loss %8.4f  norm %8.4f  lr %.2e  %9.0f tok/s  peak %4.1f%%  sent %8.1f B/tok  left %s%s%s",
                static_cast<long long>(r.step), static_cast<long long>(steps_), r.loss, r.grad_norm, r.lr, line.tokens_per_second(),
                line.step_seconds > 0 ? 100.0 * line.peak_share / line.step_seconds : 0.0,
                line.sync_bytes / static_cast<double>(std::max<int64_t>(line.tokens, 1)), duration_text(left).c_str(),
                line.synced.empty() ? "" : "  avg ", line.synced.c_str());
  return text;
}

}  // namespace nsp
