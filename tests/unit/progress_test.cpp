#include "core/train/progress.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/train/metrics.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

StepRecord record_of(int64_t step) {
  StepRecord r;
  r.step = step;
  r.loss = 2.34567;
  r.grad_norm = 1.5;
  r.tokens = 3072;
  r.step_seconds = 0.25;
  r.peak_share = 0.421;
  return r;
}

class Line : public StatusLine {
 public:
  int width() const override { return columns; }
  void show(const std::string& text) override { shown.push_back(text); }
  void end() override { ++ended; }
  int columns = 80, ended = 0;
  std::vector<std::string> shown;
};

class Quiet : public Log {
 public:
  void info(const std::string& line) override { lines += line + "\n"; }
  void warning(const std::string& line) override { lines += line + "\n"; }
  std::string lines;
};

TEST(ProgressText, FitsEveryWidthAndKeepsWhatMattersMost) {
  for (int columns = 0; columns <= 220; ++columns) {
    const std::string text = progress_text(record_of(750), 1500, 3723, columns);
    EXPECT_LE(text.size(), static_cast<std::size_t>(columns));
    EXPECT_EQ(text.find_first_of("\n\r\t"), text.npos);
    if (columns >= 13) {
      EXPECT_EQ(text.find("step 750/1500"), 0u) << columns;
    }
    if (columns >= 28) {
      EXPECT_NE(text.find("loss 2.3457"), text.npos) << columns;
    }
    if (columns >= 42) {
      EXPECT_NE(text.find("left 1:02:03"), text.npos) << columns;
    }
  }
  EXPECT_EQ(progress_text(record_of(750), 1500, 3723, 79),
            "step 750/1500  [########........]   50%  loss 2.3457  12288 tok/s  left 1:02:03");
}

TEST(ProgressText, TheBarIsFilledByTheShareOfStepsDone) {
  const auto cells = [](int64_t step) {
    const std::string text = progress_text(record_of(step), 10, 0, 200);
    return text.substr(text.find('['), text.find(']') - text.find('[') + 1);
  };
  EXPECT_EQ(cells(0), "[" + std::string(40, '.') + "]");
  EXPECT_EQ(cells(5), "[" + std::string(20, '#') + std::string(20, '.') + "]");
  EXPECT_EQ(cells(10), "[" + std::string(40, '#') + "]");
}

TEST(ProgressText, NumbersThatAreNotOnesDoNotBreakIt) {
  StepRecord r = record_of(1);
  r.loss = std::nan("");
  r.step_seconds = 0;
  EXPECT_NE(progress_text(r, 0, std::nan(""), 100).find("loss nan"), std::string::npos);
}

TEST(DurationText, HoursAndDays) {
  EXPECT_EQ(duration_text(0), "0:00:00");
  EXPECT_EQ(duration_text(59.9), "0:00:59");
  EXPECT_EQ(duration_text(86399), "23:59:59");
  EXPECT_EQ(duration_text(2 * 86400 + 3723), "2d 01:02:03");
  EXPECT_EQ(duration_text(-5), "0:00:00");
}

TEST(Progress, RewritesTenTimesASecondAndAlwaysTheLastStep) {
  Line line;
  {
    Progress progress(line, 1000);
    for (int64_t step = 1; step <= 1000; ++step) progress.update(record_of(step), 0);
    line.columns = 30;
    progress.update(record_of(1000), 0);
  }
  EXPECT_LT(line.shown.size(), 500u);
  EXPECT_EQ(line.shown.front().find("step 1/1000"), 0u);
  EXPECT_EQ(line.shown.back().find("step 1000/1000"), 0u);
  EXPECT_LT(line.shown.back().size(), 30u);
  EXPECT_EQ(line.ended, 1);
}

TEST(Metrics, TheProgressLineStandsInForStepLines) {
  const TemporaryFolder folder;
  Quiet log;
  Line line;
  Metrics metrics(folder / "metrics.jsonl", -1, 0, 3, log);
  metrics.show_progress(line);
  for (int64_t step = 1; step <= 3; ++step) metrics.step(record_of(step));
  EXPECT_EQ(log.lines, "");
  EXPECT_EQ(line.ended, 0);
  metrics.end_progress();
  EXPECT_EQ(line.ended, 1);
  EXPECT_EQ(line.shown.back().find("step 3/3"), 0u);
}

}  // namespace
}  // namespace nsp
