#include "core/train/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "nsp/error.hpp"

namespace nsp {
namespace {

LrSchedule of(ScheduleKind kind) {
  return {kind, 1.0, 0.1, 10, 110, 0.2};
}

TEST(LrSchedule, WarmUpRisesInEqualSteps) {
  const LrSchedule s = of(ScheduleKind::cosine);
  for (int t = 0; t < 10; ++t) EXPECT_DOUBLE_EQ(s.at(t), (t + 1) / 10.0);
}

TEST(LrSchedule, CosineIsHalfWayInTheMiddleAndEndsAtTheFloor) {
  const LrSchedule s = of(ScheduleKind::cosine);
  EXPECT_DOUBLE_EQ(s.at(10), 1.0);
  EXPECT_NEAR(s.at(60), 0.55, 1e-12);
  EXPECT_NEAR(s.at(110), 0.1, 1e-12);
}

TEST(LrSchedule, LinearAndConstant) {
  EXPECT_NEAR(of(ScheduleKind::linear).at(35), 1.0 - 0.9 * 0.25, 1e-12);
  EXPECT_DOUBLE_EQ(of(ScheduleKind::constant).at(109), 1.0);
}

TEST(LrSchedule, WsdStaysAtThePeakAndDecaysBySquareRoot) {
  const LrSchedule s = of(ScheduleKind::wsd);  // decays over the last 22 of 110 steps
  EXPECT_DOUBLE_EQ(s.at(87), 1.0);
  EXPECT_NEAR(s.at(99), 0.1 + 0.9 * (1.0 - std::sqrt(11.0 / 22.0)), 1e-12);
  EXPECT_NEAR(s.at(110), 0.1, 1e-12);
}

TEST(LrSchedule, NoWarmUpStartsAtThePeak) {
  LrSchedule s = of(ScheduleKind::cosine);
  s.warmup = 0;
  EXPECT_DOUBLE_EQ(s.at(0), 1.0);
}

TEST(LrSchedule, AnUnknownNameIsAUsageError) {
  EXPECT_EQ(schedule_kind("wsd"), ScheduleKind::wsd);
  EXPECT_THROW(schedule_kind("cos"), Error);
}

}  // namespace
}  // namespace nsp
