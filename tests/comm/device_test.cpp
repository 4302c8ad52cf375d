// Collectives on memory that the host cannot touch, staged through pinned buffers: on the fake device, whose copies are late.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/comm/rank_threads.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/toy_backend.hpp"

namespace nsp::test {
namespace {

// An array in device memory, written and read by a stream of the test's own.
class DeviceArray {
 public:
  DeviceArray(Stream& stream, std::vector<float> values)
      : stream_(stream), host_(std::move(values)), buffer_(stream.device(), bytes(), MemoryKind::device, "test array") {
    upload();
  }
  ~DeviceArray() { wait(); }  // the copies read host_ late
  // Enqueues the copy to the device; the event is behind it.
  void upload() {
    stream_.copy(buffer_.data(), host_.data(), bytes());
    ready = std::make_shared<Event>(stream_.device());
    ready->record(stream_);
  }
  std::vector<float> download() {
    std::vector<float> out(host_.size());
    stream_.copy(out.data(), buffer_.data(), bytes());
    wait();
    return out;
  }
  TensorView view(int64_t lo = 0, int64_t n = -1) const {
    const int64_t size = static_cast<int64_t>(host_.size());
    return TensorView(static_cast<float*>(buffer_.data()) + lo, DType::f32, {n < 0 ? size - lo : n});
  }
  After after() const { return {ready, nullptr}; }
  EventPtr ready;

 private:
  int64_t bytes() const { return static_cast<int64_t>(host_.size() * sizeof(float)); }
  void wait() {
    Event event(stream_.device());
    event.record(stream_);
    while (!event.wait_for(100000)) {
    }
  }
  Stream& stream_;
  std::vector<float> host_;
  Buffer buffer_;
};

std::vector<float> values(int rank, int64_t n, int64_t first = 0) {
  std::vector<float> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<float>((first + i) % 1001) * 0.37f + 1000.0f * static_cast<float>(rank + 1) / 3.0f;
  return v;
}

std::vector<float> sums(int ranks, int64_t n, int64_t first = 0) {
  std::vector<float> sum = values(0, n, first);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<float> next = values(r, n, first);
    for (int64_t i = 0; i < n; ++i) sum[i] += next[i];
  }
  return sum;
}

std::vector<float> joined(int ranks, int64_t n) {
  std::vector<float> all;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> part = values(r, n);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class DeviceCommunicator : public testing::TestWithParam<int> {
 protected:
  // Every rank: a fake device of its own, a communicator and a stream on it.
  void run(const std::function<void(Rank, Device&, Stream&)>& body) {
    const auto backend = make_fake_backend(toy_backend(), uint64_t{64} << 20, 7);
    std::vector<Device*> devices(GetParam());
    run_ranks(
        GetParam(), 1000,
        [&](Rank rank) {
          Device& device = *devices[rank.comm.rank()];
          Stream stream(device);
          body(rank, device, stream);
        },
        [&](int rank) {
          auto device = std::make_unique<Device>(backend->table(), "fake", 0, 1);
          devices[rank] = device.get();
          return device;
        });
  }
};

TEST_P(DeviceCommunicator, Sums) {
  run([](Rank r, Device&, Stream& stream) {
    const int p = r.comm.size(), me = r.comm.rank();
    for (int64_t n : {1, 7, 12345}) {
      DeviceArray data(stream, values(me, n));
      r.wait.wait(r.comm.all_reduce(data.view(), data.after()));
      EXPECT_EQ(data.download(), sums(p, n));
      DeviceArray whole(stream, values(me, n * p)), own(stream, std::vector<float>(n));
      r.wait.wait(*own.ready);
      r.wait.wait(r.comm.reduce_scatter(whole.view(), std::vector<int64_t>(p, n), own.view(), whole.after()));
      EXPECT_EQ(own.download(), sums(p, n, n * me));
      EXPECT_EQ(whole.download(), values(me, n * p)) << "the input was changed";
      r.wait.wait(r.comm.reduce_scatter(whole.view(), std::vector<int64_t>(p, n), whole.view(n * me, n), {}));
      std::vector<float> want = values(me, n * p);
      const std::vector<float> sum = sums(p, n, n * me);
      std::copy(sum.begin(), sum.end(), want.begin() + n * me);
      EXPECT_EQ(whole.download(), want) << "in place";
    }
  });
}

TEST_P(DeviceCommunicator, Moves) {
  run([](Rank r, Device&, Stream& stream) {
    const int p = r.comm.size(), me = r.comm.rank();
    for (int64_t n : {1, 7, 12345}) {
      const std::vector<int64_t> counts(p, n);
      DeviceArray own(stream, values(me, n)), all(stream, std::vector<float>(n * p, -1.0f)),
          in_place(stream, std::vector<float>(n * p, -1.0f));
      stream.copy(in_place.view(n * me, n).data(), own.view().data(), n * 4);
      in_place.ready->record(stream);
      const WorkPtr a = r.comm.all_gather(own.view(), counts, all.view(), in_place.after());
      const WorkPtr b = r.comm.all_gather(in_place.view(n * me, n), counts, in_place.view(), in_place.after());
      r.wait.wait(a);
      r.wait.wait(b);
      EXPECT_EQ(all.download(), joined(p, n));
      EXPECT_EQ(in_place.download(), joined(p, n));

      DeviceArray from(stream, values(me, n * p)), to(stream, std::vector<float>(n * p, -1.0f));
      r.wait.wait(r.comm.all_to_all(from.view(), counts, to.view(), counts, to.after()));
      std::vector<float> want;
      for (int j = 0; j < p; ++j) {
        const std::vector<float> part = values(j, n, n * me);
        want.insert(want.end(), part.begin(), part.end());
      }
      EXPECT_EQ(to.download(), want);

      DeviceArray data(stream, values(me, n));
      r.wait.wait(r.comm.broadcast(data.view(), p - 1, data.after()));
      EXPECT_EQ(data.download(), values(p - 1, n));
      if (p == 1) continue;
      DeviceArray got(stream, std::vector<float>(n, -1.0f));
      const WorkPtr receive = r.comm.recv(got.view(), (me + p - 1) % p, got.after());
      const WorkPtr send = r.comm.send(own.view(), (me + 1) % p, {});
      r.wait.wait(send);
      r.wait.wait(receive);
      EXPECT_EQ(got.download(), values((me + p - 1) % p, n));
    }
  });
}

TEST_P(DeviceCommunicator, OverlapsAndChains) {
  run([](Rank r, Device&, Stream& stream) {
    const int p = r.comm.size(), me = r.comm.rank();
    const int64_t held = r.comm.reserve(5000 * p);
    EXPECT_GT(held, 0);
    for (int round = 0; round < 3; ++round) {
      constexpr int kBuckets = 8;
      const int64_t n = 5000;
      const std::vector<int64_t> counts(p, n);
      std::vector<std::unique_ptr<DeviceArray>> buckets;
      std::vector<WorkPtr> works;
      for (int k = 0; k < kBuckets; ++k) buckets.push_back(std::make_unique<DeviceArray>(stream, values(me + k, n * p)));
      // As gradients go: summed to the owner, who gathers the result once it is there.
      for (int k = 0; k < kBuckets; ++k) {
        const TensorView own = buckets[k]->view(n * me, n);
        const WorkPtr sum = r.comm.reduce_scatter(buckets[k]->view(), counts, own, buckets[k]->after());
        works.push_back(r.comm.all_gather(own, counts, buckets[k]->view(), {nullptr, sum}));
      }
      for (int k = kBuckets - 1; k >= 0; --k) r.wait.wait(works[k]);
      for (int k = 0; k < kBuckets; ++k) {
        std::vector<float> want = values(k, n * p);
        for (int j = 1; j < p; ++j) {
          const std::vector<float> next = values(j + k, n * p);
          for (int64_t i = 0; i < n * p; ++i) want[i] += next[i];
        }
        EXPECT_EQ(buckets[k]->download(), want);
      }
    }
    EXPECT_EQ(r.comm.reserve(0), held) << "staging has grown";
  });
}

TEST_P(DeviceCommunicator, GroupsOfOneCopyOnTheDevice) {
  run([](Rank r, Device& device, Stream& stream) {
    const std::unique_ptr<Communicator> alone = r.comm.split(r.comm.rank(), 0, "alone", &device);
    r.wait.add(alone.get());
    DeviceArray from(stream, values(3, 5000)), to(stream, std::vector<float>(5000));
    r.wait.wait(*to.ready);
    const WorkPtr first = alone->reduce_scatter(from.view(), {5000}, to.view(), from.after());
    r.wait.wait(alone->all_gather(to.view(), {5000}, from.view(), {nullptr, first}));
    EXPECT_EQ(to.download(), values(3, 5000));
    EXPECT_EQ(from.download(), values(3, 5000));
    EXPECT_EQ(alone->bytes_sent(), 0);
    // The helpers take host values on a communicator of device memory, too.
    double one = 1;
    all_reduce_now(r.comm, r.wait, {&one, 1});
    EXPECT_EQ(one, r.comm.size());
    r.wait.remove(alone.get());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceCommunicator, testing::Values(1, 2, 3));

}  // namespace
}  // namespace nsp::test
