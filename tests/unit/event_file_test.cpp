#include "core/train/event_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/train/metrics.hpp"
#include "tests/data/temporary_folder.hpp"
#include "tests/unit/event_reader.hpp"

namespace nsp {
namespace {

using test::EventReader;
using test::EventSeen;

class Kept : public Log {
 public:
  void info(const std::string& line) override { infos.push_back(line); }
  void warning(const std::string& line) override { warnings.push_back(line); }
  std::vector<std::string> infos, warnings;
};

std::vector<EventSeen> events_of(const TemporaryFolder& folder, std::size_t file = 0) {
  return EventReader::records(read_text(folder / ("tb/" + names_in(folder / "tb").at(file))));
}

StepRecord step_record(int64_t step, double loss) {
  StepRecord r;
  r.step = step;
  r.loss = loss;
  r.grad_norm = 2;
  r.lr = 1e-3;
  r.tokens = 1000;
  r.step_seconds = 0.5;
  r.sync_bytes = 4096;
  return r;
}

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// Made by the protocol buffer classes of tensorboard 2.21: Event(wall_time=1.5, step=300, summary=[("a", 0.25)]).
TEST(EventRecord, EqualsTheBytesOfTensorBoard) {
  const Scalar scalars[] = {{"a", 0.25}};
  const std::string record = scalars_record(1.5, 300, scalars);
  EXPECT_EQ(record.substr(12, record.size() - 16), std::string("\x09\0\0\0\0\0\0\xF8\x3F\x10\xAC\x02\x2A\x0A\x0A\x08\x0A\x01"
                                                               "a\x15\0\0\x80\x3E",
                                                               24));
}

TEST(EventFile, StepsReadBackWithTheirValues) {
  const TemporaryFolder folder;
  Kept log;
  {
    Metrics metrics(folder / "metrics.jsonl", -1, 0, 3, log);
    metrics.write_events(folder / "tb");
    metrics.step(step_record(1, 3.5));
    metrics.evaluation(1, 3.25, 10, 0);
    metrics.step(step_record(2, std::nan("")));
    metrics.checkpoint(2, 1.5, 1 << 20, 0);
  }
  const std::vector<EventSeen> events = events_of(folder);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.5e9);
  EXPECT_TRUE(events[1].start);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[2].step, 1);
  EXPECT_EQ(events[2].scalars.at("train/loss"), 3.5f);
  EXPECT_EQ(events[2].scalars.at("train/lr"), 1e-3f);
  EXPECT_EQ(events[2].scalars.at("speed/tokens_per_second"), 2000.0f);
  EXPECT_EQ(events[2].scalars.at("speed/step_ms"), 500.0f);
  EXPECT_EQ(events[2].scalars.at("bytes/sync"), 4096.0f);
  EXPECT_EQ(events[3].scalars, (std::map<std::string, float>{{"eval/val_loss", 3.25f}}));
  EXPECT_TRUE(std::isnan(events[4].scalars.at("train/loss")));
  EXPECT_EQ(events[5].scalars.at("checkpoint/seconds"), 1.5f);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(EventFile, AResumedRunStartsBehindItsCheckpointInAFileThatSortsLast) {
  const TemporaryFolder folder;
  Kept log;
  // The clock was ahead when the first part ran.
  write_text(folder / "tb/events.out.tfevents.9000000000.host.1", "");
  {
    Metrics metrics(folder / "metrics.jsonl", 20, 0, 30, log);
    metrics.write_events(folder / "tb");
    metrics.step(step_record(21, 1));
  }
  ASSERT_EQ(names_in(folder / "tb").size(), 2u);
  EXPECT_EQ(names_in(folder / "tb")[1].find("events.out.tfevents.9000000001."), 0u);
  const std::vector<EventSeen> events = events_of(folder, 1);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[1].start);
  EXPECT_EQ(events[1].step, 21);
}

TEST(EventFile, WritesBeforeItEnds) {
  const TemporaryFolder folder;
  Kept log;
  EventFile file(folder / "tb", 0, log);
  EXPECT_EQ(events_of(folder).size(), 2u);
  const Scalar scalars[] = {{"a", 1}};
  for (int64_t step = 1; step <= 4000; ++step) file.add(step, scalars);  // about 190 KiB
  EXPECT_GT(events_of(folder).size(), 2000u);
  file.flush();
  EXPECT_EQ(events_of(folder).size(), 4002u);
}

TEST(EventFile, APlaceThatCannotBeWrittenIsOneWarning) {
  Kept log;
  {
    EventFile file("/proc/nowhere/tb", 0, log);
    const Scalar scalars[] = {{"a", 1}};
    file.add(1, scalars);
    file.flush();
  }
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_SAYS(log.warnings[0], "Training goes on without files for TensorBoard");
}

TEST(Metrics, AFullDiskIsOneWarningAndNotTheEnd) {
  Kept log;
  Metrics metrics("/dev/full", -1, 1, 40, log);
  for (int64_t step = 1; step <= 40; ++step) metrics.step(step_record(step, 1));
  metrics.flush();
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_SAYS(log.warnings[0], "cannot write /dev/full: No space left on device");
  EXPECT_EQ(log.infos.size(), 40u);
}

}  // namespace
}  // namespace nsp
