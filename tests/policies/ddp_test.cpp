#include <gtest/gtest.h>

#include <atomic>

#include "nsp/sync_policy.hpp"
#include "tests/policies/plugin_object.hpp"
#include "tests/policies/ranks.hpp"

namespace nsp::test {
namespace {

// ddp reaches no state.
class NoCache : public LocCache {
  void open(const StateStorage&) override {}
  std::string place(const StateDecl&, int) const override { return "device"; }
  void prefetch(StateId, Range) override {}
  TensorView acquire(StateId, Range, Stream&) override { throw Error(ErrorKind::internal, "ddp acquires no state"); }
  void release(StateId, Range, bool) override {}
  void invalidate(int) override {}
  CacheCounters counters() const override { return {}; }
};

std::vector<float> gradient(int rank, int segment, int64_t n) {
  return values(n, static_cast<unsigned>(1000 * rank + segment));
}

// What a serial program gets that adds the replicas up in their order.
std::vector<float> serial_sum(int replicas, int segment, int64_t n) {
  std::vector<float> sum = gradient(0, segment, n);
  for (int m = 1; m < replicas; ++m) {
    const std::vector<float> x = gradient(m, segment, n);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  }
  return sum;
}

void sum_over_replicas(Kind kind, int replicas) {
  const std::vector<int64_t> sizes{1000, 0, 64, 37};  // the second segment has no range here
  std::atomic<int64_t> bytes{0};
  run_ranks(kind, replicas, [&](Rank& rank) {
    PluginObject<SyncPolicy> ddp(nsp_builtin_sync_ddp);
    NoCache cache;
    std::vector<Range> owned;
    for (std::size_t s = 0; s < sizes.size(); ++s) owned.push_back({static_cast<int>(s), 0, sizes[s]});
    EXPECT_TRUE(ddp->declare({}, replicas).empty());
    ddp->open({rank.rank,
               replicas,
               std::vector<double>(static_cast<std::size_t>(replicas), 1.0 / replicas),
               rank.comm,
               owned,
               {},
               cache,
               rank.stream,
               rank.wait,
               256});
    for (int64_t t = 0; t < 2; ++t) {
      std::vector<Buffer> gradients;
      ddp->begin_step(t);
      for (std::size_t s = sizes.size(); s-- > 0;) {
        gradients.push_back(upload(rank, gradient(rank.rank, static_cast<int>(s), sizes[s])));
        const TensorView view = vector_view(gradients.back());
        Ops(rank.stream).scale(view, 2.0F);  // late work that the sum must wait for
        ddp->gradient_ready(owned[s], view, After{now(rank), nullptr});
      }
      ddp->finish_step(t);
      EXPECT_EQ(ddp->synced(t), "");
      for (std::size_t s = 0; s < sizes.size(); ++s) {
        std::vector<float> expected = serial_sum(replicas, static_cast<int>(s), sizes[s]);
        for (float& value : expected) value *= 2.0F;
        EXPECT_EQ(read(rank, vector_view(gradients[sizes.size() - 1 - s])), expected) << "segment " << s;
      }
    }
    bytes += rank.comm.bytes_sent();
  });
  EXPECT_EQ(bytes, 2 * 2 * (replicas - 1) * 4 * 1101) << "two steps, least traffic";
}

TEST(Ddp, GradientsAreSummedInReplicaOrder) {
  for (const int replicas : {1, 2, 3, 5}) sum_over_replicas(Kind::cpu, replicas);
}

TEST(Ddp, GradientsAreSummedOnADeviceTheHostCannotTouch) {
  for (const int replicas : {1, 3}) sum_over_replicas(Kind::fake, replicas);
}

TEST(Ddp, SaysWhatItIs) {
  PluginObject<SyncPolicy> ddp(nsp_builtin_sync_ddp);
  EXPECT_TRUE(ddp->sums_gradients());
  EXPECT_FALSE(ddp->replicas_differ(4));
  EXPECT_EQ(ddp->staging_bytes(4, 1000), 0);
  EXPECT_TRUE(ddp->traffic(1000, 1).empty());
  const std::vector<TrafficLine> lines = ddp->traffic(1000, 4);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].bytes_per_step, 24000.0);
  EXPECT_EQ(lines[0].bytes_at_once, 24000.0);
  EXPECT_EQ(lines[0].what, "sum of gradients in fp32 every step");
  EXPECT_NE(usage_error([] { PluginObject<SyncPolicy>(nsp_builtin_sync_ddp, {{"reduce_dtype", "bf16"}}); }), "");
}

}  // namespace
}  // namespace nsp::test
