// What hides behind the opaque pointers of a fake device. For the fake_device sources alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "nsp/backend.h"
#include "tests/support/fake_device_memory.hpp"
#include "tests/support/fake_device_stream.hpp"

namespace nsp::test {

struct FakeStream;

struct FakeDevice {
  FakeDevice(const nsp_backend* backend, nsp_device* device, uint64_t capacity, unsigned first_seed)
      : real(backend), real_device(device), memory(capacity), seed(first_seed) {}

  const nsp_backend* const real;
  nsp_device* const real_device;
  FakeMemory memory;
  std::atomic<int> events{0};

  std::mutex mutex;  // protects what follows
  std::vector<FakeStream*> streams;
  unsigned seed;
  std::string last_error;
  std::string failure;  // once set, the device is lost

  // Sets last_error and returns status.
  nsp_status refuse(nsp_status status, const std::string& text);
  nsp_status refuse_lost();
  void lose(const std::string& text);
  bool lost();
};

struct FakeStream {
  FakeStream(FakeDevice& owner, nsp_stream* stream, nsp_event* event, unsigned seed)
      : device(owner), real_stream(stream), real_event(event), queue(seed) {}

  FakeDevice& device;
  nsp_stream* const real_stream;  // of the queue's thread alone, as real_event
  nsp_event* const real_event;
  FakeQueue queue;
};

struct FakeDeviceEvent {
  FakeDevice& device;
  FakeEvent event;
};

// The wrapped ops: those that the real backend has, and no others.
nsp_op_table make_fake_ops(const nsp_op_table& real);

}  // namespace nsp::test
