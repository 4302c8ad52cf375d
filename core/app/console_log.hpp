// The log of nsp_app: rank 0 prints, the others are silent. Where a status line is shown, log lines appear above it.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "core/app/terminal.hpp"
#include "core/train/progress.hpp"
#include "nsp/log.hpp"

namespace nsp {

class ConsoleLog : public Log, public StatusLine {
 public:
  explicit ConsoleLog(bool prints) : prints_(prints) {}
  void info(const std::string& line) override;
  void warning(const std::string& line) override;
  bool prints() const noexcept { return prints_; }
  // From here on a reader that goes away (head, a terminal that is closed) takes only its output with it, not this process.
  void outlive_readers();

  // For the width of the status line; without one it is what COLUMNS says, or 80.
  void use_terminal(std::optional<Terminal> terminal);
  int width() const override { return terminal_ ? terminal_->width() : default_width(); }
  void show(const std::string& text) override;
  void end() override;

 private:
  void erase();
  void draw();
  void flush(std::FILE* stream);
  bool prints_;
  bool outlives_readers_ = false;
  std::unique_ptr<Terminal> terminal_;
  std::string status_;  // what is shown; empty: nothing
};

}  // namespace nsp
