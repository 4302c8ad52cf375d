// A policy that averages, at work: threads as replicas that drift apart, compared with a serial program bit for bit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/policies/ranks.hpp"

namespace nsp::test {

// Runs the sync policy whose sources are part of the test program on every replica, with an optimizer of a first and a second
// moment, and compares all states after every phase of every step with the serial program, and the bytes sent with the formula.
// given: its options. weights: of the replicas. schedule: what must be averaged at each step, "" or some of x, u and v.
void run_against_serial(Kind kind, int replicas, const std::map<std::string, std::string>& given, const std::vector<double>& weights,
                        const std::vector<std::string>& schedule);

}  // namespace nsp::test
