#include "core/train/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nsp/error.hpp"

namespace nsp {
namespace {

class Quiet : public Log {
 public:
  void info(const std::string& line) override { infos += line + "\n"; }
  void warning(const std::string& line) override { warnings += line + "\n"; }
  std::string infos, warnings;
};

std::string file_in_temp(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("nsp_metrics_" + std::to_string(getpid()) + "_" + name)).string();
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(JsonLine, WritesNumbersThatReadBackAndNullForNaN) {
  JsonLine line;
  line.add("a", 0.1).add("b", std::nan("")).add("c", int64_t{7}).add("d", std::string("x\"\n")).add("e", true);
  EXPECT_EQ(line.text(), "{\"a\":0.1,\"b\":null,\"c\":7,\"d\":\"x\\\"\\u000a\",\"e\":true}");
}

TEST(JsonLine, WritesListsOfTextsAndOfObjects) {
  JsonLine line;
  line.add("texts", std::vector<std::string>{"a", "b\""}).add("none", std::vector<std::string>{});
  line.add("objects", std::vector<JsonLine>{JsonLine().add("x", int64_t{1}), JsonLine().add("y", true)});
  EXPECT_EQ(line.text(), R"({"texts":["a","b\""],"none":[],"objects":[{"x":1},{"y":true}]})");
}

TEST(Metrics, ALineHasTheSpeedBytesAndAveragesOfAllStepsSinceTheLineBefore) {
  const std::string path = file_in_temp("lines");
  Quiet log;
  Metrics m(path, -1, 2, 5, log);
  for (int i = 1; i <= 5; ++i) {
    StepRecord r;
    r.step = i;
    r.loss = i;
    r.tokens = 100;
    r.step_seconds = i % 2 == 1 ? 1 : 3;
    r.peak_share = i % 2 == 1 ? 0.5 : 0.1;
    if (i == 1 || i == 3) {
      r.sync_bytes = 700;
      r.replica_bytes = 200;
      r.control_bytes = 100;
      r.synced = i == 1 ? "x" : "xu";
    }
    m.step(r);
  }
  std::istringstream lines(log.infos);
  std::string line;
  for (const char* part : {"step      2/5  loss   2.0000", "step      4/5  loss   4.0000"}) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_NE(line.find(part), std::string::npos) << line;
    EXPECT_NE(line.find(" 50 tok/s  peak 20.0%  sent      5.0 B/tok"), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(part[10] == '2' ? "  avg x" : "  avg xu")) << line;
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_NE(line.find(" 100 tok/s  peak 50.0%  sent      0.0 B/tok"), std::string::npos) << line;
  EXPECT_EQ(line.find("avg"), std::string::npos) << line;
  std::filesystem::remove(path);
}

TEST(Metrics, AResumedRunCutsWhatCameAfterItsCheckpoint) {
  const std::string path = file_in_temp("resume");
  Quiet log;
  {
    Metrics m(path, -1, 0, 10, log);
    for (int i = 1; i <= 5; ++i) {
      StepRecord r;
      r.step = i;
      r.tokens = 1;
      r.step_seconds = 1;
      m.step(r);
    }
  }
  std::ofstream(path, std::ios::app) << "{\"kind\":\"step\",\"step\":6,\"lo";  // torn by a kill
  {
    Metrics m(path, 3, 0, 10, log);
    m.record(JsonLine().add("kind", std::string("resume")).add("step", int64_t{3}));
  }
  const std::string text = text_of(path);
  EXPECT_NE(text.find("\"step\":3"), std::string::npos);
  EXPECT_EQ(text.find("\"step\":4"), std::string::npos);
  EXPECT_EQ(text.find("\"step\":6"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Metrics, ASkippedStepIsSaid) {
  const std::string path = file_in_temp("skip");
  Quiet log;
  Metrics m(path, -1, 1, 10, log);
  StepRecord r;
  r.step = 2;
  r.loss = std::nan("");
  r.tokens = 4;
  r.step_seconds = 1;
  r.skipped_replicas = 2;
  m.step(r);
  m.record(JsonLine());
  EXPECT_NE(log.warnings.find("2 replica(s) skipped"), std::string::npos);
  EXPECT_NE(text_of(path).find("\"loss\":null"), std::string::npos);
  EXPECT_NE(log.infos.find("2/10"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Metrics, LinesWaitWhileTheDiskIsFull) {
  const std::string path = file_in_temp("full");
  std::filesystem::create_symlink("/dev/full", path);  // every write to it fails for want of room
  Quiet log;
  {
    Metrics m(path, -1, 0, 10, log);
    m.record(JsonLine().add("kind", std::string("eval")).add("step", int64_t{2}));
    m.record(JsonLine().add("kind", std::string("eval")).add("step", int64_t{3}));
    EXPECT_EQ(log.warnings.find("cannot write " + path), 0u) << log.warnings;
    EXPECT_NE(log.warnings.find("No space left on device"), std::string::npos) << log.warnings;
    EXPECT_EQ(log.warnings.find("cannot write", 1), std::string::npos) << "said twice: " << log.warnings;
    std::filesystem::remove(path);
    m.record(JsonLine().add("kind", std::string("eval")).add("step", int64_t{4}));
    EXPECT_NE(log.infos.find("is written again, without a gap"), std::string::npos) << log.infos;
  }
  const std::string text = text_of(path);
  for (const char* step : {"\"step\":2}\n", "\"step\":3}\n", "\"step\":4}\n"}) EXPECT_NE(text.find(step), std::string::npos) << text;
  std::filesystem::remove(path);
}

TEST(Metrics, WhatCannotBeWrittenTillTheEndIsSaid) {
  const std::string path = file_in_temp("lost");
  std::filesystem::create_symlink("/dev/full", path);
  Quiet log;
  { Metrics(path, -1, 0, 10, log).record(JsonLine().add("kind", std::string("eval")).add("step", int64_t{2})); }
  EXPECT_NE(log.warnings.find("the end of " + path + " is missing"), std::string::npos) << log.warnings;
  std::filesystem::remove(path);
}

// A log that is cut for a resume is replaced whole or not at all.
TEST(Metrics, AFullDiskLeavesTheLogOfTheRunBefore) {
  const std::string path = file_in_temp("kept");
  std::ofstream(path) << "{\"kind\":\"step\",\"step\":1}\n";
  std::filesystem::create_symlink("/dev/full", path + ".tmp");
  Quiet log;
  EXPECT_THROW(Metrics(path, 1, 0, 10, log), Error);
  EXPECT_EQ(text_of(path), "{\"kind\":\"step\",\"step\":1}\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  std::filesystem::remove(path);
}

TEST(Metrics, AnUnwritablePlaceIsAnError) {
  Quiet log;
  EXPECT_THROW(Metrics("/proc/nowhere/metrics.jsonl", -1, 0, 1, log), Error);
}

}  // namespace
}  // namespace nsp
