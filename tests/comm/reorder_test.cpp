// Collectives over a transport that does all that a transport may do: messages of different tags overtake each other,
// completions come late and in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "comm/exchange.hpp"
#include "comm/local_transport.hpp"
#include "tests/comm/collective_checks.hpp"

namespace nsp::test {
namespace {

class Reordering final : public Transport {
 public:
  Reordering(std::unique_ptr<Transport> inner, unsigned seed) : inner_(std::move(inner)), random_(seed) {}
  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  int world_rank(int rank) const noexcept override { return inner_->world_rank(rank); }
  void isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) override { held_.push_back({data, bytes, peer, tag, id}); }
  void irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) override { inner_->irecv(data, bytes, peer, tag, id); }
  void test_some(std::vector<uint32_t>& finished) override {
    // Some of the messages that were sent leave now, in any order among different tags.
    for (size_t left = held_.size(); left > 0; --left) {
      if (random_() % 3 == 0) continue;
      const size_t pick = random_() % held_.size();
      const auto first =
          std::find_if(held_.begin(), held_.end(), [&](const Send& s) { return s.peer == held_[pick].peer && s.tag == held_[pick].tag; });
      inner_->isend(first->data, first->bytes, first->peer, first->tag, first->id);
      held_.erase(first);
    }
    inner_->test_some(late_);
    std::shuffle(late_.begin(), late_.end(), random_);
    const size_t now = late_.empty() ? 0 : random_() % (late_.size() + 1);
    finished.insert(finished.end(), late_.end() - static_cast<std::ptrdiff_t>(now), late_.end());
    late_.resize(late_.size() - now);
  }
  std::unique_ptr<Transport> split(int color, int key) override {
    return std::make_unique<Reordering>(inner_->split(color, key), static_cast<unsigned>(random_()));
  }
  [[noreturn]] void abort(int code, const std::string& reason) override {
    inner_->abort(code, reason);
    throw Error(ErrorKind::comm, reason);
  }

 private:
  struct Send {
    const void* data;
    int64_t bytes;
    int peer, tag;
    uint32_t id;
  };
  std::unique_ptr<Transport> inner_;
  std::minstd_rand random_;
  std::vector<Send> held_;
  std::vector<uint32_t> late_;
};

class ReorderedCommunicator : public testing::TestWithParam<int> {};

TEST_P(ReorderedCommunicator, DoesTheSame) {
  const int ranks = GetParam();
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  const auto group = std::make_shared<LocalGroup>(std::make_shared<LocalJob>(), all);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      NoRing ring;
      CommContext context{ring};
      context.block_elements = 53;
      ExchangeCommunicator comm(std::make_unique<Reordering>(std::make_unique<LocalTransport>(group, r), 100u + r), "world", context,
                                nullptr);
      HostWait wait;
      wait.add(&comm);
      try {
        check_all_reduce(comm, wait, 4099);
        check_reduce_scatter(comm, wait, 4099);
        check_all_gather(comm, wait, 4099);
        check_all_to_all(comm, wait, 4099);
        check_broadcast(comm, wait, 4099);
        check_send_recv(comm, wait, 4099);
        for (int i = 0; i < 10; ++i) check_overlap(comm, wait, 3000);
        check_split(comm, wait);
        check_bytes(comm, wait);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
        EXPECT_THROW(comm.abort(1, error.what()), Error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReorderedCommunicator, testing::Values(2, 3, 4));

// More operations than tags have numbers: the sequence wraps around while one of the first is still waiting for its input.
TEST(ReorderedCommunicator, NumbersWrapAround) {
  const auto group = std::make_shared<LocalGroup>(std::make_shared<LocalJob>(), std::vector<int>{0, 1});
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      NoRing ring;
      CommContext context{ring};
      ExchangeCommunicator comm(std::make_unique<Reordering>(std::make_unique<LocalTransport>(group, r), 100u + r), "world", context,
                                nullptr);
      HostWait wait;
      wait.add(&comm);
      try {
        const auto gate = std::make_shared<Gate>();
        int64_t first = 1;
        const WorkPtr late = comm.all_reduce(TensorView(&first, DType::i64, {1}), {nullptr, gate});
        constexpr int kMany = 5000;
        std::vector<int64_t> values(kMany);
        std::iota(values.begin(), values.end(), 0);
        std::vector<WorkPtr> works;
        for (int64_t& value : values) works.push_back(comm.all_reduce(TensorView(&value, DType::i64, {1}), {}));
        wait.wait(works[4000]);
        EXPECT_FALSE(works[kMany - 1]->done()) << "its tag could be that of the first";
        gate->open = true;
        for (const WorkPtr& work : works) wait.wait(work);
        wait.wait(late);
        EXPECT_EQ(first, 2);
        for (int i = 0; i < kMany; ++i) ASSERT_EQ(values[i], 2 * i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
        EXPECT_THROW(comm.abort(1, error.what()), Error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nsp::test
