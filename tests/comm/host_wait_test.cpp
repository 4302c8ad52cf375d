// What HostWait tells of its time: waiting for other ranks, and data of the device on its way.
#include <gtest/gtest.h>

#include <chrono>

#include "nsp/communicator.hpp"

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

// In flight, and started, from 40 ms to 80 ms after it was made.
class Timed : public Work, public Progressing {
 public:
  bool done() override { return passed() >= 0.08; }
  bool started() const noexcept override { return passed() >= 0.04; }
  bool progress() override { return passed() < 0.08; }
  bool in_flight() const noexcept override { return flies && passed() >= 0.04 && passed() < 0.08; }
  double passed() const noexcept { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  bool flies = true;
  Clock::time_point begin = Clock::now();
};

TEST(HostWaitTimes, WaitingCountsFromTheStartOfTheWork) {
  HostWait wait;
  Timed work;
  wait.add(&work);
  wait.wait(work);
  const double passed = work.passed();
  EXPECT_GE(wait.times().exposed, 0.02);  // a loaded machine may take the core away for a while
  EXPECT_LE(wait.times().exposed, passed - 0.04);
  EXPECT_GE(wait.times().in_flight, 0.01);
  EXPECT_LE(wait.times().in_flight, passed - 0.04);
}

TEST(HostWaitTimes, FlightUnderOtherWorkIsNotWaiting) {
  HostWait wait;
  Timed work;
  wait.add(&work);
  while (work.passed() < 0.1) wait.progress();
  wait.wait(work);
  EXPECT_EQ(wait.times().exposed, 0);
  EXPECT_GE(wait.times().in_flight, 0.01);
  EXPECT_LE(wait.times().in_flight, 0.1);
}

TEST(HostWaitTimes, TwoInFlightCountOnceAndHostVectorsDoNot) {
  HostWait wait;
  Timed a, b, vector;
  vector.flies = false;
  for (Timed* member : {&a, &b, &vector}) wait.add(member);
  while (vector.passed() < 0.1) wait.progress();
  EXPECT_LE(wait.times().in_flight, vector.passed() - 0.04);
  HostWait other;
  Timed alone;
  alone.flies = false;
  other.add(&alone);
  while (alone.passed() < 0.1) other.progress();
  EXPECT_EQ(other.times().in_flight, 0);
}

}  // namespace
}  // namespace nsp
