// Devices, memory, streams, events and failures of every backend that was found.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "cases.hpp"

namespace nsp_ops {

namespace {

class Device : public testing::TestWithParam<const Backend*> {
 protected:
  const nsp_backend& table() const { return *GetParam()->table; }
  // A device of its own, for tests that break it.
  nsp_device* open() const {
    const nsp_device_config config{sizeof(nsp_device_config), compute_threads(), 0};
    nsp_device* device = nullptr;
    EXPECT_EQ(table().open(0, &config, &device), NSP_OK) << table().last_error(nullptr);
    return device;
  }
};

std::vector<const Backend*> pointers() {
  std::vector<const Backend*> result;
  for (const Backend& backend : backends()) result.push_back(&backend);
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, Device, testing::ValuesIn(pointers()),
                         [](const testing::TestParamInfo<const Backend*>& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Device);

TEST_P(Device, InfoSaysWhatItIs) {
  nsp_device_info info{};
  info.size = sizeof info;
  ASSERT_EQ(table().info(GetParam()->device, &info), NSP_OK);
  EXPECT_NE(std::string(info.name), "");
  EXPECT_GT(info.memory_total, uint64_t{1} << 20);
  EXPECT_GT(info.memory_free, 0u);
  EXPECT_LE(info.memory_free, info.memory_total);
  if (std::string(info.kind) == "cpu") {
    EXPECT_EQ(info.host_addressable, 1);
    EXPECT_GE(info.threads, 1);
  }
}

TEST_P(Device, OpensSeveralTimesAndAgain) {
  nsp_device* first = open();
  nsp_device* second = open();
  table().close(first);
  nsp_device* third = open();
  for (nsp_device* device : {second, third}) {
    nsp_stream* stream = nullptr;
    ASSERT_EQ(table().stream_create(device, &stream), NSP_OK);
    table().stream_destroy(stream);
    table().close(device);
  }
}

TEST_P(Device, RefusesToOpenNonsense) {
  const nsp_device_config config{sizeof(nsp_device_config), 1, 0}, none{sizeof(nsp_device_config), 0, 0};
  nsp_device* device = nullptr;
  EXPECT_EQ(table().open(1000, &config, &device), NSP_ERR_ARGUMENT);
  EXPECT_STRNE(table().last_error(nullptr), "");
  EXPECT_EQ(table().open(0, &none, &device), NSP_ERR_ARGUMENT);
  EXPECT_EQ(device, nullptr);
}

TEST_P(Device, AllocationsAreAligned) {
  nsp_device* device = GetParam()->device;
  for (const int32_t kind : {NSP_MEMORY_DEVICE, NSP_MEMORY_PINNED}) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{3} << 20}) {
      void* pointer = nullptr;
      ASSERT_EQ(table().allocate(device, bytes, kind, &pointer), NSP_OK);
      EXPECT_NE(pointer, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
      table().release(device, pointer, kind);
    }
  }
}

TEST_P(Device, ImpossibleAllocationIsAnError) {
  void* pointer = nullptr;
  EXPECT_EQ(table().allocate(GetParam()->device, uint64_t{1} << 62, NSP_MEMORY_DEVICE, &pointer), NSP_ERR_MEMORY);
  EXPECT_STRNE(table().last_error(GetParam()->device), "");
}

TEST_P(Device, UnrecordedEventIsReached) {
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(GetParam()->device, &event), NSP_OK);
  EXPECT_EQ(table().event_query(event), 1);
  EXPECT_EQ(table().event_wait(event, 1000000), 1);
  table().event_destroy(event);
}

// Enough work that the event is not there at once.
void enqueue_work(Bench& bench, const nsp_tensor& x, int times) {
  for (int i = 0; i < times; ++i) {
    nsp_scale_args a{};
    a.x = x;
    a.a = 1.0f;
    bench.run(bench.ops().scale, a);
  }
}

TEST_P(Device, EventIsReachedAfterTheWork) {
  Bench bench(*GetParam());
  const nsp_tensor x = bench.in(Array({1 << 20}, 1.0));
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(bench.device(), &event), NSP_OK);
  enqueue_work(bench, x, 200);
  ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
  EXPECT_EQ(table().event_query(event), 0) << "the host waited for the work, or it was not queued";
  EXPECT_EQ(table().event_wait(event, 0), 0);
  const auto start = std::chrono::steady_clock::now();
  while (table().event_query(event) == 0 && std::chrono::steady_clock::now() - start < std::chrono::minutes(1)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(table().event_query(event), 1);
  table().event_destroy(event);
}

TEST_P(Device, EventMayBeDestroyedWhilePending) {
  Bench bench(*GetParam());
  const nsp_tensor x = bench.in(Array({1 << 20}, 1.0));
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(bench.device(), &event), NSP_OK);
  enqueue_work(bench, x, 50);
  ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
  table().event_destroy(event);
  bench.wait();
}

TEST_P(Device, LaterRecordReplacesTheEarlierOne) {
  Bench bench(*GetParam());
  const nsp_tensor x = bench.in(Array({1 << 20}, 1.0));
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(bench.device(), &event), NSP_OK);
  ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
  bench.wait();
  EXPECT_EQ(table().event_query(event), 1);
  enqueue_work(bench, x, 200);
  ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
  EXPECT_EQ(table().event_query(event), 0);
  EXPECT_EQ(table().event_wait(event, 60000000), 1);
  table().event_destroy(event);
}

// x is changed on one stream, read on another behind an event, and changed again on the first behind a second event.
TEST_P(Device, StreamsOrderByEvents) {
  Bench first(*GetParam()), second(*GetParam());
  constexpr int64_t kSize = 1 << 18;
  const nsp_tensor x = first.in(Array({kSize}, 1.0)), seen = second.out({kSize});
  nsp_event *written = nullptr, *read = nullptr;
  ASSERT_EQ(table().event_create(first.device(), &written), NSP_OK);
  ASSERT_EQ(table().event_create(first.device(), &read), NSP_OK);
  for (int round = 0; round < 30; ++round) {
    nsp_scale_args twice{};
    twice.x = x;
    twice.a = round % 2 == 0 ? 2.0f : 0.5f;
    first.run(first.ops().scale, twice);
    ASSERT_EQ(table().event_record(first.stream(), written), NSP_OK);
    ASSERT_EQ(table().stream_wait(second.stream(), written), NSP_OK);
    nsp_copy_args copy{};
    copy.out = seen;
    copy.x = x;
    second.run(second.ops().copy, copy);
    ASSERT_EQ(table().event_record(second.stream(), read), NSP_OK);
    ASSERT_EQ(table().stream_wait(first.stream(), read), NSP_OK);
    if (round % 10 < 8) continue;
    const Array got = second.read(seen);
    for (double v : got.v) ASSERT_EQ(v, round % 2 == 0 ? 2.0 : 1.0) << "round " << round;
  }
  table().event_destroy(written);
  table().event_destroy(read);
}

TEST_P(Device, StreamsOfSeveralThreads) {
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) {
    threads.emplace_back([this, id] {
      nsp_device* device = open();
      Backend own = *GetParam();
      own.device = device;
      {
        Bench bench(own);
        const Array start = random_array({5000}, id);
        const nsp_tensor x = bench.in(start);
        for (int i = 0; i < 100; ++i) {
          nsp_scale_args a{};
          a.x = x;
          a.a = i % 2 == 0 ? 2.0f : 0.5f;
          bench.run(bench.ops().scale, a);
        }
        expect_near(bench.read(x), start, 0.0, "x");
      }
      table().close(device);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Device, CopyAndFillMoveBytes) {
  Bench bench(*GetParam());
  std::vector<unsigned char> source(3000001), back(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + i / 251);
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(table().allocate(bench.device(), source.size(), NSP_MEMORY_DEVICE, &a), NSP_OK);
  ASSERT_EQ(table().allocate(bench.device(), source.size(), NSP_MEMORY_PINNED, &b), NSP_OK);
  EXPECT_EQ(table().copy(bench.stream(), a, source.data(), source.size()), NSP_OK);
  EXPECT_EQ(table().copy(bench.stream(), b, a, source.size()), NSP_OK);
  EXPECT_EQ(table().fill(bench.stream(), a, 0x5a, source.size()), NSP_OK);
  EXPECT_EQ(table().copy(bench.stream(), back.data(), b, source.size()), NSP_OK);
  EXPECT_EQ(table().copy(bench.stream(), nullptr, nullptr, 0), NSP_OK);
  bench.wait();
  EXPECT_EQ(back, source);
  EXPECT_EQ(table().copy(bench.stream(), back.data(), a, source.size()), NSP_OK);
  bench.wait();
  EXPECT_EQ(back, std::vector<unsigned char>(source.size(), 0x5a));
  EXPECT_EQ(table().copy(bench.stream(), nullptr, a, 4), NSP_ERR_ARGUMENT);
  table().release(bench.device(), a, NSP_MEMORY_DEVICE);
  table().release(bench.device(), b, NSP_MEMORY_PINNED);
}

// What only the compute thread can see: the event reports it, the text names it, and nothing behind it runs.
TEST_P(Device, FailureAtRunTimeSurfaces) {
  Backend own = *GetParam();
  own.device = open();
  if (std::string(own.name).rfind("cpu", 0) != 0) GTEST_SKIP() << "a backend may not check values in its memory";
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(own.device, &event), NSP_OK);
  {
    Bench bench(own);
    Array tokens({3});
    tokens.v = {0.0, 99.0, 1.0};
    nsp_embedding_forward_args a{};
    a.tokens = bench.in(tokens, NSP_I32);
    a.table = bench.in(random_array({4, 5}, 1));
    a.out = bench.out({3, 5});
    nsp_scale_args behind{};
    behind.x = bench.in(Array({4}, 3.0));
    behind.a = 2.0f;
    enqueue_work(bench, bench.in(Array({1 << 20}, 1.0)), 100);  // so that all of the following is queued before it fails
    bench.run(bench.ops().embedding_forward, a);
    EXPECT_EQ(bench.call(bench.ops().scale, behind), NSP_OK);
    ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
    EXPECT_LT(table().event_wait(event, 60000000), 0);
    EXPECT_LT(table().event_query(event), 0);
    const std::string text = bench.error();
    EXPECT_NE(text.find("embedding_forward"), std::string::npos) << text;
    EXPECT_NE(text.find("tokens[1] is 99"), std::string::npos) << text;
    EXPECT_EQ(bench.call(bench.ops().embedding_forward, a), NSP_ERR_DEVICE);
    EXPECT_EQ(bench.error(), text) << "the first failure's text stays";
    EXPECT_EQ(*static_cast<const float*>(behind.x.data), 3.0f) << "an op behind the failure ran";  // a CPU: host memory
  }
  table().event_destroy(event);
  table().close(own.device);
  Bench other(*GetParam());  // another device is not affected
  EXPECT_EQ(other.read(other.in(Array({3}, 2.0))).v[0], 2.0);
}

TEST_P(Device, WrongTargetSurfaces) {
  Backend own = *GetParam();
  own.device = open();
  if (std::string(own.name).rfind("cpu", 0) != 0) GTEST_SKIP() << "a backend may not check values in its memory";
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(own.device, &event), NSP_OK);
  {
    Bench bench(own);
    nsp_classifier_args a{};
    a.logits = bench.in(random_array({1, 8}, 1));
    a.targets = bench.in(Array({1}, 6.0), NSP_I32);
    a.losses = bench.out({1});
    a.vocabulary = 6;  // the target is a padding column
    bench.run(bench.ops().classifier, a);
    ASSERT_EQ(table().event_record(bench.stream(), event), NSP_OK);
    EXPECT_LT(table().event_wait(event, 60000000), 0);
    EXPECT_NE(bench.error().find("targets[0] is 6"), std::string::npos) << bench.error();
  }
  table().event_destroy(event);
  table().close(own.device);
}

}  // namespace
}  // namespace nsp_ops
