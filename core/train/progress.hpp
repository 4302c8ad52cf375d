// The progress of a run on a terminal: one line that is rewritten.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/train/step_record.hpp"

namespace nsp {

// The last line of a terminal. Whoever owns it keeps log lines from tearing it.
class StatusLine {
 public:
  virtual ~StatusLine() = default;
  virtual int width() const = 0;                   // columns of the terminal, now
  virtual void show(const std::string& text) = 0;  // in place of what is shown; REQUIRES less than width() columns of ASCII
  virtual void end() = 0;                          // leaves the text as a line of its own; nothing if none is shown
};

// Parts of a status line, two spaces apart. The rank says which go first where there are too few columns: the largest. A bar, filled
// by `done` of 0 to 1, takes what is free.
struct LinePart {
  std::string text;
  int rank = 0;
  bool bar = false;
};
std::string fitted_line(std::vector<LinePart> parts, double done, int columns);

// "step 120/1500 [###.......]  8%  loss 2.3451  ..." in at most `columns` columns: what matters less is left out where they are few.
// left: seconds to go.
std::string progress_text(const StepRecord& record, int64_t steps, double left, int columns);

// "1:02:03"; days where there are some: "2d 01:02:03".
std::string duration_text(double seconds);

class Progress {
 public:
  Progress(StatusLine& line, int64_t steps) : line_(line), steps_(steps) {}
  ~Progress() { line_.end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Rewrites the line, at most ten times a second, and always for the first and the last step.
  void update(const StepRecord& record, double left);

 private:
  StatusLine& line_;
  int64_t steps_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace nsp
