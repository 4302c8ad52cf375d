// autosp's exchanges: threads as the ranks of one replica.
#include <gtest/gtest.h>

#include <atomic>

#include "nsp/parallel_strategy.hpp"
#include "tests/policies/plugin_object.hpp"
#include "tests/policies/ranks.hpp"

namespace nsp::test {
namespace {

struct Shape {
  int64_t batch = 0, tokens = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

// The element of part p at (b, t, h, d) of the whole tensor.
float element(int p, int64_t b, int64_t t, int64_t h, int64_t d) {
  return static_cast<float>((((p * 10 + b) * 100 + t) * 10 + h) * 10 + d);
}

// Part p of the tensors [b, t0:t1, h0:h1, :], dense.
std::vector<float> block(int p, const Shape& shape, int64_t t0, int64_t t1, int64_t h0, int64_t h1) {
  std::vector<float> x;
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t t = t0; t < t1; ++t)
      for (int64_t h = h0; h < h1; ++h)
        for (int64_t d = 0; d < shape.head_dim; ++d) x.push_back(element(p, b, t, h, d));
  return x;
}

// One rank's tensors: q, k and v lie side by side in each token's row, as a fused projection leaves them, and as heads apart.
class Tensors {
 public:
  Tensors(Rank& rank, const Shape& shape, const ParallelStrategy& strategy, const ParallelPlan& plan, bool filled) : shape_(shape) {
    const std::size_t i = static_cast<std::size_t>(rank.rank);
    t0_ = plan.token_cuts[i];
    t1_ = plan.token_cuts[i + 1];
    const int64_t row = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    std::vector<float> fused;
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t t = t0_; t < t1_; ++t)
        for (int p = 0; p < 3; ++p)
          for (int64_t h = 0; h < heads_of(p); ++h)
            for (int64_t d = 0; d < shape.head_dim; ++d) fused.push_back(filled ? element(p, b, t, h, d) : -1.0F);
    fused_ = upload(rank, fused);
    int64_t column = 0;
    for (int p = 0; p < 3; ++p) {
      const HeadShare share = strategy.head_share(plan, rank.rank, shape.heads, shape.kv_heads);
      const int64_t h0 = p == 0 ? share.query_lo : share.kv_lo, h1 = p == 0 ? share.query_hi : share.kv_hi;
      ranges_.push_back({h0, h1});
      const int64_t elements = shape.batch * shape.tokens * (h1 - h0) * shape.head_dim;
      heads_.push_back(upload(rank, std::vector<float>(static_cast<std::size_t>(elements), -1.0F)));
      const TensorView sequence(static_cast<float*>(fused_.data()) + column, DType::f32,
                                {shape.batch, t1_ - t0_, heads_of(p), shape.head_dim}, {(t1_ - t0_) * row, row, shape.head_dim, 1});
      parts.push_back({sequence, TensorView(heads_.back().data(), DType::f32, {shape.batch, shape.tokens, h1 - h0, shape.head_dim})});
      column += heads_of(p) * shape.head_dim;
    }
  }
  int64_t heads_of(int p) const { return p == 0 ? shape_.heads : shape_.kv_heads; }

  void expect_heads(Rank& rank) const {
    for (int p = 0; p < 3; ++p) {
      const auto [h0, h1] = ranges_[static_cast<std::size_t>(p)];
      EXPECT_EQ(read(rank, vector_view(heads_[static_cast<std::size_t>(p)])), block(p, shape_, 0, shape_.tokens, h0, h1)) << "part " << p;
    }
  }
  std::vector<float> fused(Rank& rank) const { return read(rank, vector_view(fused_)); }

  // fused(), with keys and values as often as there are ranks that hold their head: what their sum is if all hold the same.
  std::vector<float> times_holders(Rank& rank, const ParallelStrategy& strategy, const ParallelPlan& plan, int degree) const {
    std::vector<float> x = fused(rank);
    const int64_t row = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int64_t head = static_cast<int64_t>(i) % row / shape_.head_dim - shape_.heads;
      if (head < 0) continue;
      int holders = 0;
      for (int position = 0; position < degree; ++position) {
        const HeadShare share = strategy.head_share(plan, position, shape_.heads, shape_.kv_heads);
        holders += share.kv_lo <= head % shape_.kv_heads && head % shape_.kv_heads < share.kv_hi;
      }
      x[i] *= static_cast<float>(holders);
    }
    return x;
  }

  std::vector<HeadExchange> parts;

 private:
  Shape shape_;
  int64_t t0_ = 0, t1_ = 0;
  Buffer fused_;
  std::vector<Buffer> heads_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

void round_trip(Kind kind, int degree, const Shape& shape) {
  SCOPED_TRACE(name_of(kind) + " degree " + std::to_string(degree) + " heads " + std::to_string(shape.heads));
  run_ranks(kind, degree, [&](Rank& rank) {
    PluginObject<ParallelStrategy> strategy(nsp_plugin, {{"degree", std::to_string(degree)}});
    const ParallelQuestion question{.ranks = degree,
                                    .heads = shape.heads,
                                    .kv_heads = shape.kv_heads,
                                    .head_dim = shape.head_dim,
                                    .context = shape.tokens,
                                    .global_batch = shape.batch};
    const ParallelPlan plan = strategy->propose(question);
    const int64_t staging = strategy->staging_bytes(plan, question, shape.batch);
    EXPECT_EQ(staging > 0, degree > 1);
    strategy->open({plan, rank.rank, rank.comm, rank.stream, rank.wait, shape.heads, shape.kv_heads, shape.head_dim, shape.batch});
    if (degree == 1) {
      EXPECT_FALSE(strategy->splits_heads());
      return;
    }
    Tensors a(rank, shape, *strategy, plan, true);
    Tensors b(rank, shape, *strategy, plan, false);
    strategy->sequence_to_heads(a.parts);
    // From the heads of a into the sequence of b, part by part and with no wait in between: each exchange uses the staging again.
    for (std::size_t p = 0; p < 3; ++p) {
      const HeadExchange back{b.parts[p].sequence, a.parts[p].heads};
      strategy->heads_to_sequence(std::span(&back, 1));
    }
    a.expect_heads(rank);
    EXPECT_EQ(b.fused(rank), degree <= shape.kv_heads ? a.fused(rank) : a.times_holders(rank, *strategy, plan, degree));
  });
}

TEST(AutospExchange, ThereAndBackIsTheIdentity) {
  for (const int degree : {1, 2, 3, 4}) {
    round_trip(Kind::cpu, degree, {2, 24, 12, 12, 4});  // all divides evenly
    round_trip(Kind::cpu, degree, {2, 23, 5, 5, 3});    // nothing does
    round_trip(Kind::cpu, degree, {1, degree, degree, degree, 2});
  }
}

TEST(AutospExchange, GroupedKeysAndValuesGoThereAndBackAndReplicasAreSummed) {
  round_trip(Kind::cpu, 2, {2, 11, 8, 2, 4});
  round_trip(Kind::cpu, 3, {2, 11, 8, 4, 4});  // whole groups, unevenly
  for (const int degree : {3, 4, 8}) {
    round_trip(Kind::cpu, degree, {2, 11, 8, 2, 4});
    round_trip(Kind::cpu, degree, {2, 11, 8, 1, 4});
  }
}

// The order of the sum is seen where rounding depends on it.
TEST(AutospExchange, ReplicasAreSummedInRankOrder) {
  const Shape shape{1, 3, 3, 1, 2};
  run_ranks(Kind::cpu, 3, [&](Rank& rank) {
    PluginObject<ParallelStrategy> strategy(nsp_plugin, {{"degree", "3"}});
    const ParallelPlan plan = strategy->propose({.ranks = 3, .heads = 3, .kv_heads = 1, .head_dim = 2, .context = 3, .global_batch = 1});
    strategy->open({plan, rank.rank, rank.comm, rank.stream, rank.wait, 3, 1, 2, 1});
    Tensors a(rank, shape, *strategy, plan, false);
    const float values[] = {1e8F, 1.0F, -1e8F};  // (1e8 + 1) - 1e8 = 0; with the last two exchanged it is 1
    const Buffer own = upload(rank, std::vector<float>(6, values[rank.rank]));
    const HeadExchange part{a.parts[1].sequence, TensorView(own.data(), DType::f32, {1, 3, 1, 2})};
    strategy->heads_to_sequence(std::span(&part, 1));
    const std::vector<float> fused = a.fused(rank);
    EXPECT_EQ(fused[6], 0.0F);
    EXPECT_EQ(fused[7], 0.0F);
    EXPECT_EQ(fused[8], -1.0F) << "values were not exchanged";
  });
}

TEST(AutospExchange, ThereAndBackOnADeviceTheHostCannotTouch) {
  for (const int degree : {2, 3, 4}) round_trip(Kind::fake, degree, {2, 23, 5, 5, 3});
  round_trip(Kind::fake, 3, {2, 11, 8, 2, 4});
}

TEST(AutospExchange, OnlyWhatOthersNeedIsSent) {
  std::atomic<int64_t> bytes{0};
  const Shape shape{1, 8, 4, 4, 2};
  run_ranks(Kind::cpu, 2, [&](Rank& rank) {
    PluginObject<ParallelStrategy> strategy(nsp_plugin, {{"degree", "2"}});
    const ParallelPlan plan = strategy->propose({.ranks = 2, .heads = 4, .kv_heads = 4, .head_dim = 2, .context = 8, .global_batch = 1});
    strategy->open({plan, rank.rank, rank.comm, rank.stream, rank.wait, 4, 4, 2, 1});
    Tensors a(rank, shape, *strategy, plan, true);
    strategy->sequence_to_heads(a.parts);
    rank.wait.wait(*now(rank));  // unpacking still reads the staging
    bytes += rank.comm.bytes_sent();
  });
  EXPECT_EQ(bytes, 3 * 8 * 4 * 2 * 4 / 2) << "half of q, k and v";
}

TEST(AutospExchange, ViewsThatDoNotFollowThePlanAreRefused) {
  const Shape shape{1, 8, 4, 4, 2};
  run_ranks(Kind::cpu, 2, [&](Rank& rank) {
    PluginObject<ParallelStrategy> strategy(nsp_plugin, {{"degree", "2"}});
    EXPECT_THROW(strategy->sequence_to_heads({}), Error) << "not open yet";
    const ParallelPlan plan = strategy->propose({.ranks = 2, .heads = 4, .kv_heads = 4, .head_dim = 2, .context = 8, .global_batch = 1});
    strategy->open({plan, rank.rank, rank.comm, rank.stream, rank.wait, 4, 4, 2, 1});
    Tensors a(rank, shape, *strategy, plan, true);
    const HeadExchange swapped{a.parts[0].heads, a.parts[0].sequence};
    EXPECT_THROW(strategy->sequence_to_heads(std::span(&swapped, 1)), Error);
    std::vector<HeadExchange> twice = a.parts;
    twice.insert(twice.end(), a.parts.begin(), a.parts.end());
    EXPECT_THROW(strategy->sequence_to_heads(twice), Error) << "more than the staging holds";
  });
}

}  // namespace
}  // namespace nsp::test
