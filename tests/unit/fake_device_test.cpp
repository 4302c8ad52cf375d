// That the fake device computes the right thing, late, and finds what it is there to find.
#include "tests/support/fake_device.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>

#include "nsp/device.hpp"
#include "tests/support/cpu_backend.hpp"
#include "tests/support/toy_backend.hpp"

#if defined(NSP_UNDER_ASAN) || defined(__SANITIZE_THREAD__)
#define EXPECT_SEGV(statement) EXPECT_DEATH(statement, "SEGV")
#else
#define EXPECT_SEGV(statement) EXPECT_EXIT(statement, ::testing::KilledBySignal(SIGSEGV), "")
#endif

// Tests that race on purpose.
#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "this test holds a data race on purpose"
#else
#define SKIP_UNDER_TSAN() ((void)0)
#endif

namespace nsp {
namespace {

using test::make_fake_backend;
using test::toy_backend;

void finish(Stream& stream) {
  Event event(stream.device());
  event.record(stream);
  while (!event.wait_for(1000000)) {
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class FakeDeviceTest : public ::testing::Test {
 protected:
  TensorView f32(const Buffer& buffer, int64_t n) { return TensorView(buffer.data(), DType::f32, {n}); }

  std::unique_ptr<test::FakeBackend> backend_ = make_fake_backend(toy_backend(), 1 << 20, 7);
  Device device_{backend_->table(), "fake", 0, 1};
};
using FakeDeviceDeathTest = FakeDeviceTest;

TEST_F(FakeDeviceTest, Info) {
  const DeviceInfo info = device_.info();
  EXPECT_FALSE(info.host_addressable);
  EXPECT_EQ(info.kind, "fake");
  EXPECT_EQ(info.memory_total, 1 << 20);
  Buffer held(device_, 1000, MemoryKind::device, "held");
  EXPECT_EQ(device_.info().memory_free, (1 << 20) - 1024);
  EXPECT_FALSE(device_.supports(NSP_OP_rope, DType::f32));
}

TEST_F(FakeDeviceDeathTest, TheHostCannotTouchDeviceMemory) {
  Buffer buffer(device_, 64, MemoryKind::device, "buffer");
  auto* p = static_cast<volatile float*>(buffer.data());
  EXPECT_SEGV((void)*p);
  EXPECT_SEGV(*p = 1.0f);
}

TEST_F(FakeDeviceDeathTest, ObjectsThatOutliveTheDevice) {
  const auto leak = [] {
    auto backend = make_fake_backend(toy_backend(), 4096, 1);
    auto device = std::make_unique<Device>(backend->table(), "fake", 0, 1);
    Buffer buffer(*device, 64, MemoryKind::device, "buffer");
    device.reset();
  };
  EXPECT_DEATH(leak(), "1 allocations of it are alive");
}

TEST_F(FakeDeviceTest, MemoryIsFoundAgainAndEnds) {
  {
    Buffer a(device_, 512 << 10, MemoryKind::device, "a");
    Buffer b(device_, 256 << 10, MemoryKind::device, "b");
    a = Buffer();
    Buffer c(device_, 400 << 10, MemoryKind::device, "c");  // in a's place
    EXPECT_LT(c.data(), b.data());
    EXPECT_THROW(Buffer(device_, 300 << 10, MemoryKind::device, "d"), Error);
  }
  Buffer all(device_, 1 << 20, MemoryKind::device, "all");
  EXPECT_THROW(Buffer(device_, int64_t{1} << 62, MemoryKind::pinned, "too much"), Error);
}

TEST_F(FakeDeviceTest, FreshMemoryIsNaN) {
  Stream stream(device_);
  Buffer buffer(device_, 64, MemoryKind::device, "buffer");
  float host[16] = {};
  stream.copy(host, buffer.data(), 64);
  finish(stream);
  EXPECT_TRUE(std::isnan(host[0]) && std::isnan(host[15]));
}

// Two streams pass two vectors to and fro; each round depends on the other stream's last one. The numbers stay whole and below
// 2^24, so the result is exact.
TEST_F(FakeDeviceTest, TwoStreamsInOrderByEvents) {
  constexpr int64_t n = 64;
  Stream first(device_), second(device_);
  Buffer a(device_, n * 4, MemoryKind::device, "a"), b(device_, n * 4, MemoryKind::device, "b");
  Buffer one(device_, n * 4, MemoryKind::device, "one"), pinned(device_, n * 4, MemoryKind::pinned, "pinned");
  std::vector<float> ones(n, 1.0f);
  first.copy(one.data(), ones.data(), n * 4);
  Ops(first).zero(f32(a, n));
  Ops(first).zero(f32(b, n));
  Event first_done(device_), second_done(device_);
  float expected_a = 0, expected_b = 0;
  for (int round = 0; round < 200; ++round) {
    // a grows on the first stream; b = b + a on the second, behind it.
    Ops(first).axpy(f32(a, n), f32(one, n), static_cast<float>(round % 5));
    first_done.record(first);
    second.wait(first_done);
    Ops(second).axpy(f32(b, n), f32(a, n), 1.0f);
    second_done.record(second);
    first.wait(second_done);
    expected_a += static_cast<float>(round % 5);
    expected_b += expected_a;
    if (round % 50 == 49) {
      Ops(first).scale(f32(b, n), 0.5f);
      Ops(first).scale(f32(b, n), 2.0f);
    }
  }
  first.copy(pinned.data(), b.data(), n * 4);
  finish(first);
  ASSERT_LT(expected_b, 16777216.0f);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(static_cast<float*>(pinned.data())[i], expected_b);
}

// Without the event the reader must go wrong in some round, or the delays would prove nothing.
TEST_F(FakeDeviceTest, AMissingEventShows) {
  SKIP_UNDER_TSAN();
  constexpr int64_t n = 16;
  Stream writer(device_), reader(device_);
  Buffer a(device_, n * 4, MemoryKind::device, "a"), out(device_, n * 4, MemoryKind::pinned, "out");
  int wrong = 0;
  for (int round = 1; round <= 200; ++round) {
    writer.fill(a.data(), round, n * 4);
    reader.copy(out.data(), a.data(), n * 4);
    finish(reader);
    wrong += static_cast<unsigned char*>(out.data())[0] != round;
    finish(writer);
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(FakeDeviceTest, ALaterRecordReplacesAnEarlierOne) {
  Stream busy(device_), idle(device_);
  Event event(device_), never(device_), last(device_);
  Buffer a(device_, 64, MemoryKind::device, "a");
  EXPECT_TRUE(never.query());
  test::toy_hold_ops(true);
  Ops(busy).scale(f32(a, 16), 1.0f);
  event.record(busy);
  last.record(busy);
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(event.wait_for(1000));
  event.record(idle);
  while (!event.wait_for(1000000)) {
  }
  EXPECT_FALSE(last.query());  // the idle stream's record was reached while the busy stream stands still
  test::toy_hold_ops(false);
  finish(busy);
  EXPECT_TRUE(last.query());
}

// A stream waits for the record that was newest at the call: not for a later one, which may never come.
TEST_F(FakeDeviceTest, AStreamWaitsForTheRecordOfTheCall) {
  Stream busy(device_), waiting(device_);
  Event event(device_);
  Buffer a(device_, 64, MemoryKind::device, "a");
  event.record(waiting);
  waiting.wait(event);
  test::toy_hold_ops(true);
  Ops(busy).scale(f32(a, 16), 1.0f);
  event.record(busy);
  finish(waiting);
  EXPECT_FALSE(event.query());
  test::toy_hold_ops(false);
  finish(busy);
}

TEST_F(FakeDeviceTest, SomeTasksAreDelayed) {
  Stream stream(device_);
  Buffer a(device_, 64, MemoryKind::device, "a");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 400; ++i) stream.fill(a.data(), i % 256, 64);
  finish(stream);
  // About 50 sleeps of 150 us; without them this takes some 0.2 ms.
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2));
}

TEST_F(FakeDeviceTest, SourcesAreReadLate) {
  SKIP_UNDER_TSAN();
  Stream stream(device_);
  Buffer a(device_, 4, MemoryKind::device, "a"), block(device_, 64, MemoryKind::device, "block");
  int late = 0;
  for (int round = 0; round < 100; ++round) {
    float value = 1.0f, result = 0.0f;
    stream.copy(a.data(), &value, 4);
    value = 2.0f;  // a bug that a synchronous backend would hide
    stream.copy(&result, a.data(), 4);
    finish(stream);
    late += result == 2.0f;
  }
  EXPECT_GT(late, 0);
}

TEST_F(FakeDeviceTest, HostMemoryIsNoTensor) {
  Stream stream(device_);
  Buffer device_memory(device_, 64, MemoryKind::device, "device"), pinned(device_, 64, MemoryKind::pinned, "pinned");
  std::vector<float> host(16);
  const TensorView host_view(host.data(), DType::f32, {16});
  EXPECT_TRUE(contains(error_of([&] { Ops(stream).axpy(f32(device_memory, 16), host_view, 1.0f); }), "axpy: tensor 1 lies in host memory"));
  EXPECT_NO_THROW(Ops(stream).axpy(f32(device_memory, 16), f32(pinned, 16), 1.0f));
  finish(stream);
}

TEST_F(FakeDeviceTest, ViewsStayInsideTheirAllocation) {
  Stream stream(device_);
  Buffer a(device_, 64, MemoryKind::device, "a"), next(device_, 64, MemoryKind::device, "next");
  EXPECT_NO_THROW(Ops(stream).scale(f32(a, 16), 1.0f));
  EXPECT_TRUE(contains(error_of([&] { Ops(stream).scale(f32(a, 17), 1.0f); }), "leaves its allocation"));
  EXPECT_TRUE(contains(error_of([&] { stream.fill(a.data(), 0, 65); }), "leaves its allocation"));
  char host[65];
  EXPECT_TRUE(contains(error_of([&] { stream.copy(host, a.data(), 65); }), "the source leaves its allocation"));
  EXPECT_TRUE(contains(error_of([&] { stream.copy(static_cast<char*>(a.data()) + 8, a.data(), 16); }), "overlap"));
  const TensorView end(static_cast<char*>(a.data()) + 64, DType::f32, {0});
  EXPECT_NO_THROW(Ops(stream).scale(end, 1.0f));
  void* released = next.data();
  next = Buffer();
  EXPECT_TRUE(contains(error_of([&] { Ops(stream).scale(TensorView(released, DType::f32, {4}), 1.0f); }), "not allocated"));
  finish(stream);
}

TEST_F(FakeDeviceTest, ReleaseUnderQueuedWorkLosesTheDevice) {
  Stream stream(device_);
  Event event(device_);
  Buffer a(device_, 64, MemoryKind::device, "a"), b(device_, 64, MemoryKind::device, "b"), c(device_, 64, MemoryKind::device, "c");
  test::toy_hold_ops(true);
  Ops(stream).scale(f32(a, 16), 1.0f);
  stream.fill(b.data(), 0, 64);
  c = Buffer();
  EXPECT_TRUE(event.query());
  b = Buffer();
  test::toy_hold_ops(false);
  EXPECT_TRUE(contains(error_of([&] { event.query(); }), "was released while work"));
  char host = 0;
  EXPECT_TRUE(contains(error_of([&] { stream.fill(&host, 0, 1); }), "was released while work"));
}

TEST_F(FakeDeviceTest, AFailureOfTheRealBackendComesWithTheEvent) {
  Stream stream(device_);
  Buffer a(device_, 64, MemoryKind::device, "a");
  test::toy_set_status(NSP_ERR_ARGUMENT);
  EXPECT_NO_THROW(Ops(stream).scale(f32(a, 16), 1.0f));
  EXPECT_TRUE(contains(error_of([&] { finish(stream); }), "scale failed on the real backend: the toy says no"));
  test::toy_set_status(NSP_OK);
}

TEST_F(FakeDeviceTest, MissingOpsStayMissing) {
  nsp_op_table ops = *toy_backend()->ops;
  nsp_backend table = *toy_backend();
  table.ops = &ops;
  ops.size = offsetof(nsp_op_table, adamw);
  const auto elder = make_fake_backend(&table, 4096, 1);
  EXPECT_NE(elder->table()->ops->random_fill, nullptr);
  EXPECT_EQ(elder->table()->ops->adamw, nullptr);
}

TEST(FakeDevices, RanksAsThreads) {
  const auto shared = make_fake_backend(toy_backend(), 1 << 16, 3);
  std::vector<std::thread> ranks;
  std::vector<float> results(4);
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto own = make_fake_backend(toy_backend(), 1 << 16, static_cast<unsigned>(rank));
      Device device((rank % 2 == 0 ? shared : own)->table(), "fake", 0, 1);
      Stream stream(device);
      Buffer sum(device, 4, MemoryKind::device, "sum"), one(device, 4, MemoryKind::device, "one");
      const float start = static_cast<float>(rank), step = 1.0f;
      stream.copy(sum.data(), &start, 4);
      stream.copy(one.data(), &step, 4);
      const TensorView s(sum.data(), DType::f32, {1}), o(one.data(), DType::f32, {1});
      for (int i = 0; i < 50; ++i) Ops(stream).axpy(s, o, 2.0f);
      stream.copy(&results[rank], sum.data(), 4);
      finish(stream);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(results[rank], 100.0f + static_cast<float>(rank));
}

// A step of real ops, from random numbers to an optimizer's update, with the gradient made on a second stream; in bf16 with
// master weights in fp32, or in fp32.
std::vector<float> computed_on(const nsp_backend* table, int rounds, bool in_bf16) {
  constexpr int64_t n = 24, elements = n * n;
  Device device(table, "under test", 0, 1);
  Stream first(device), second(device);
  Buffer memory(device, 8 * elements * 4, MemoryKind::device, "matrices"), pinned(device, elements * 4, MemoryKind::pinned, "result");
  const auto vector = [&](int i) { return TensorView(static_cast<float*>(memory.data()) + i * elements, DType::f32, {elements}); };
  const auto matrix = [&](int i) { return vector(i).reshape({n, n}); };
  const auto narrow = [&](int i) {  // four of them, behind the fp32 ones
    return TensorView(static_cast<char*>(memory.data()) + 6 * elements * 4 + i * elements * 2, DType::bf16, {elements});
  };
  const auto narrow_matrix = [&](int i) { return narrow(i).reshape({n, n}); };
  Event weights_ready(device), gradient_ready(device);
  Ops(first).random_fill(vector(0), 1, 2, 0, 0.0f, 0.1f, true);
  for (int i = 1; i < 6; ++i) Ops(first).zero(vector(i));
  for (int round = 0; round < rounds; ++round) {
    Ops(first).random_fill(vector(1), 1, 3, static_cast<uint64_t>(round * elements), -1.0f, 2.0f, false);
    weights_ready.record(first);
    second.wait(weights_ready);
    if (in_bf16) {
      for (int i = 0; i < 2; ++i) Ops(second).cast(narrow(i), vector(i));
      Ops(second).matmul(narrow_matrix(2), narrow_matrix(1), narrow_matrix(0), {.transpose_a = true});
      Ops(second).gelu_forward(narrow_matrix(3), narrow_matrix(2));
      Ops(second).cast(vector(3), narrow(3));
      Ops(second).matmul(matrix(3), narrow_matrix(3), narrow_matrix(1), {.accumulate = true});
    } else {
      Ops(second).matmul(matrix(2), matrix(1), matrix(0), {.transpose_a = true});
      Ops(second).gelu_forward(matrix(3), matrix(2));
    }
    gradient_ready.record(second);
    first.wait(gradient_ready);
    Ops(first).adamw(vector(0), vector(3), vector(4), vector(5), {1e-2f, 0.9f, 0.1f, 0.95f, 0.05f, 1e-8f, 0.1f, 1.0f, 1.0f, 1.0f});
  }
  first.copy(pinned.data(), memory.data(), elements * 4);
  finish(first);
  const auto* result = static_cast<const float*>(pinned.data());
  return {result, result + elements};
}

TEST(FakeDeviceOnCpu, SameBitsAsTheRealDevice) {
  const nsp_backend* real = test::load_cpu_backend();
  const auto fake = make_fake_backend(real, 1 << 20, 11);
  for (const bool in_bf16 : {false, true}) {
    const std::vector<float> expected = computed_on(real, 200, in_bf16);
    EXPECT_EQ(computed_on(fake->table(), 200, in_bf16), expected);
    EXPECT_NE(computed_on(real, 199, in_bf16), expected);
    for (float value : expected) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(CpuBackend, SaysWhereItLooked) {
  const char* path = std::getenv("NSP_PLUGIN_PATH");
  const std::string before = path != nullptr ? path : "";
  setenv("NSP_PLUGIN_PATH", "/nowhere", 1);
  std::string text;
  try {
    test::load_cpu_backend();
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  if (path != nullptr) {
    setenv("NSP_PLUGIN_PATH", before.c_str(), 1);
  } else {
    unsetenv("NSP_PLUGIN_PATH");
  }
  EXPECT_TRUE(contains(text, "NSP_PLUGIN_PATH=/nowhere")) << text;
}

}  // namespace
}  // namespace nsp
