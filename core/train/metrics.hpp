// What a run tells: metrics.jsonl and event files in the run directory, step lines and a progress line on standard output. Only rank 0
// has one that writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/train/event_file.hpp"
#include "core/train/json_line.hpp"
#include "core/train/line_file.hpp"
#include "core/train/progress.hpp"
#include "nsp/log.hpp"

namespace nsp {

class Metrics {
 public:
  // path: of metrics.jsonl; empty: nothing is written and nothing printed (other ranks). resumed_step >= 0: the run goes on from
  // there, later lines are cut. log_every: steps between printed lines; 0 = none. Error(io) if the file cannot be written now;
  // later that is a warning, and lines wait in memory until there is room.
  Metrics(const std::string& path, int64_t resumed_step, int64_t log_every, int64_t steps, Log& log);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same numbers for TensorBoard; ignored on other ranks.
  void write_events(const std::string& folder);
  // A line that is rewritten in every step. It ends with this object, or with end_progress().
  void show_progress(StatusLine& line);
  void end_progress() { progress_.reset(); }

  void step(const StepRecord& record);
  void evaluation(int64_t step, double loss, int64_t tokens, int64_t bytes);
  void checkpoint(int64_t step, double seconds, int64_t size, int64_t bytes);
  void record(const JsonLine& line);  // any other kind; flushed at once
  void flush();                       // before a checkpoint: a run that is killed behind it goes on after lines that exist
  double seconds_in_steps() const noexcept { return seconds_; }
  int64_t tokens() const noexcept { return tokens_; }

 private:
  // Loss, norm and learning rate of the step; speed, bytes and averages of the steps since the line before.
  std::string step_text(const StepRecord& record, double left) const;
  void add_to_line(const StepRecord& record);
  double seconds_left(const StepRecord& record);
  std::string path_;
  std::unique_ptr<LineFile> out_;  // nullptr: another rank
  bool waits_ = false;             // lines of out_ could not be written
  int64_t resumed_step_, log_every_, steps_;
  Log& log_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Progress> progress_;
  double seconds_ = 0, recent_seconds_ = 0;  // of all steps of this process; running mean of a step
  int64_t tokens_ = 0;
  StepRecord since_line_;                        // sums; peak_share: times seconds; synced: each text once
  std::chrono::steady_clock::time_point began_;  // when the first step was told
  double first_seconds_ = 0;                     // of that step
  int64_t seen_ = 0;                             // steps that were told
};

// Lines of a metrics file up to and including `step`; a torn last line is dropped.
std::string lines_up_to(const std::string& path, int64_t step);

}  // namespace nsp
