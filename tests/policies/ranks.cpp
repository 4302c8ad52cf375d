#include "tests/policies/ranks.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "comm/local.hpp"
#include "tests/support/cpu_backend.hpp"
#include "tests/support/fake_device.hpp"

namespace nsp::test {
namespace {

constexpr uint64_t fake_capacity = uint64_t{64} << 20;
// Small, so that even the small messages of tests travel in several blocks.
constexpr int64_t block_elements = 128;

const nsp_backend* backend(Kind kind) {
  static const nsp_backend* const real = load_cpu_backend();
  static const std::unique_ptr<FakeBackend> fake = make_fake_backend(real, fake_capacity, 7);
  return kind == Kind::cpu ? real : fake->table();
}

class QuietRing : public CollectiveRing {
 public:
  uint64_t entered(CollectiveRecord) override { return ++entered_; }
  void waiting(uint64_t, const std::string&) override {}
  void finished(uint64_t) override {}

 private:
  uint64_t entered_ = 0;
};

void run_rank(Kind kind, int rank, int ranks, LocalWorld& world, const std::function<void(Rank&)>& body, std::function<void()> failed) {
  Device device(backend(kind), name_of(kind), 0, 1);
  Stream stream(device);
  QuietRing ring;
  const std::unique_ptr<Communicator> comm = world.communicator(rank, ring, block_elements, &device);
  HostWait wait;
  wait.add(comm.get());
  Rank self{rank, ranks, device, stream, *comm, wait};
  try {
    body(self);
    wait.wait(*now(self));
  } catch (...) {
    failed();
    try {
      comm->abort(1, "another rank of this test failed");
    } catch (const Error&) {  // it is how a rank among threads ends
    }
  }
}

}  // namespace

std::string name_of(Kind kind) {
  return kind == Kind::cpu ? "cpu" : "fake";
}

void run_ranks(Kind kind, int ranks, const std::function<void(Rank&)>& body) {
  LocalWorld world(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  const auto failed = [&] {
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
  };
  backend(kind);  // loaded by one thread
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { run_rank(kind, rank, ranks, world, body, failed); });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

EventPtr now(Rank& rank) {
  auto event = std::make_shared<Event>(rank.device, "test");
  event->record(rank.stream);
  return event;
}

void write(Rank& rank, TensorView to, const std::vector<float>& values) {
  NSP_REQUIRE(to.elements() == static_cast<int64_t>(values.size()), "as many values as elements");
  rank.stream.copy(to.data(), values.data(), to.bytes());
  rank.wait.wait(*now(rank));  // the values are read late
}

Buffer upload(Rank& rank, const std::vector<float>& values) {
  Buffer buffer(rank.device, static_cast<int64_t>(values.size() * sizeof(float)), MemoryKind::device, "test");
  write(rank, vector_view(buffer), values);
  return buffer;
}

std::vector<float> read(Rank& rank, TensorView from) {
  std::vector<float> values(static_cast<std::size_t>(from.elements()));
  rank.stream.copy(values.data(), from.data(), from.bytes());
  rank.wait.wait(*now(rank));
  return values;
}

std::vector<float> values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& value : x) value = uniform(engine);
  return x;
}

std::vector<float> serial_mean(const std::vector<std::vector<float>>& x, const std::vector<double>& weights) {
  std::vector<float> mean = x[0];
  for (std::size_t m = 1; m < x.size(); ++m)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = mean[i] + static_cast<float>(weights[m]) * (x[m][i] - x[0][i]);
  return mean;
}

}  // namespace nsp::test
