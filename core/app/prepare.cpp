// nsp_app prepare: text to token shards.
#include "core/data/prepare.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "core/app/verbs.hpp"
#include "core/discover/host.hpp"
#include "core/train/signals.hpp"

namespace nsp {
namespace {

constexpr int most_threads = 16;  // by default: more only make a disk seek

struct Interrupted {
  int signal;
};

// How far it is: a line that is rewritten on a terminal, a line every ten seconds elsewhere. Ends the preparation after a signal.
class PrepareProgress {
 public:
  explicit PrepareProgress(ConsoleLog& log) : log_(log) {
    std::optional<Terminal> terminal = Terminal::find(false);
    rewrites_ = terminal.has_value();
    log_.use_terminal(std::move(terminal));
  }
  ~PrepareProgress() { log_.end(); }
  PrepareProgress(const PrepareProgress&) = delete;
  PrepareProgress& operator=(const PrepareProgress&) = delete;

  void operator()(int64_t done, int64_t total) {
    if (const int signal = received_signal(); signal != 0) throw Interrupted{signal};
    const Clock::time_point now = Clock::now();
    if (now - told_ < (rewrites_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000)) && done < total) return;
    if (!rewrites_ && now - begin_ < std::chrono::seconds(10)) return;  // short ones say nothing before their end
    told_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count(),
                 part = static_cast<double>(done) / static_cast<double>(total);
    char percent[32], speed[48];
    std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(100.0 * part));
    std::snprintf(speed, sizeof speed, "%.0f MB/s", seconds > 0 ? static_cast<double>(done) / 1e6 / seconds : 0.0);
    const std::string left = "left " + duration_text(part > 0 ? seconds / part - seconds : 0);
    if (rewrites_)
      log_.show(fitted_line({{"preparing", 0}, {"", 4, true}, {percent, 1}, {speed, 3}, {left, 2}}, part, log_.width() - 1));
    else
      log_.info("preparing " + std::string(percent) + "  " + speed + "  " + left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  ConsoleLog& log_;
  bool rewrites_ = false;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point told_ = begin_;
};

// Ends this process by the signal that interrupted it, so that shells and scripts see what happened.
[[noreturn]] void end_by(int signal, const std::string& output) {
  std::fprintf(stderr, "nsp_app: interrupted by signal %d. %s is as it was before.\n", signal, output.c_str());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);  // if the signal is blocked
}

}  // namespace

int run_prepare(Session& session) {
  session.configure({});
  const Config& config = session.config();
  const Options& verb = config.section("prepare");
  PrepareOptions options;
  options.inputs = config.list("prepare", "input");
  options.output = verb.text("output");
  options.tokenizer = verb.text("tokenizer");
  options.text_key = verb.text("text-key");
  options.val_fraction = verb.number("val-fraction");
  options.seed = static_cast<uint64_t>(verb.integer("seed"));
  options.threads = verb.text("threads") == "auto" ? std::clamp(static_cast<int>(read_host().cores.count()), 1, most_threads)
                                                   : static_cast<int>(parse::integer(verb.text("threads")));
  if (options.inputs.empty())
    throw Error(ErrorKind::usage,
                "prepare needs --input. There is no text to read. Name files, folders or globs: nsp_app prepare --input 'src/**/*.py' "
                "--output data/mine");
  if (options.output.empty())
    throw Error(ErrorKind::usage, "prepare needs --output. There is no place to write to. Name a folder: --output data/mine");
  std::string report;
  try {
    const SignalHandlers handlers;
    PrepareProgress progress(session.log());
    options.progress = [&](int64_t done, int64_t total) { progress(done, total); };
    report = prepare(options).text();
  } catch (const Interrupted& interrupted) {
    end_by(interrupted.signal, options.output);
  }
  std::fputs(report.c_str(), stdout);
  return exit_code::done;
}

}  // namespace nsp
