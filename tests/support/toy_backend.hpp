// A backend of a few lines, for tests of what stands above a backend. Every op does its work at the call, in fp32: axpy and scale
// compute, the others only note their arguments. Device 0 has 1 MiB of memory; device 1 cannot be opened.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "nsp/backend.h"

namespace nsp::test {

const nsp_backend* toy_backend();

// The last op that ran on any toy device, and the bytes of its argument struct.
std::string toy_last_op();
std::vector<char> toy_last_arguments();

template <class Args>
Args toy_arguments() {
  const std::vector<char> bytes = toy_last_arguments();
  Args args{};
  std::memcpy(&args, bytes.data(), bytes.size() < sizeof args ? bytes.size() : sizeof args);
  return args;
}

// While set, the next ops return it instead of running.
void toy_set_status(nsp_status status);
// While held, ops wait where they run; so a stream of a fake device around this backend stands still.
void toy_hold_ops(bool held);
// While set, events report a failure.
void toy_set_event_failure(bool failing);

}  // namespace nsp::test
