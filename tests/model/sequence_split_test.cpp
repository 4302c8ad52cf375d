// Attention on head shards: two and three ranks, as threads with a device each, compute what one rank computes. The exchange
// goes through host memory and is as plain as its meaning; real strategies have their own tests.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "tests/model/rig.hpp"
#include "tests/model/samples.hpp"

namespace nsp::test {
namespace {

// What the ranks share: who has which tokens and heads, and the pieces on their way.
struct Board {
  explicit Board(std::vector<int64_t> tokens, std::vector<int64_t> heads)
      : token_cuts(std::move(tokens)),
        head_cuts(std::move(heads)),
        pieces(token_cuts.size() - 1),
        meet(static_cast<std::ptrdiff_t>(token_cuts.size()) - 1) {}
  std::size_t ranks() const { return pieces.size(); }
  std::vector<int64_t> token_cuts, head_cuts;
  std::vector<std::vector<Values>> pieces;  // [rank][part], dense
  std::barrier<> meet;
};

class BoardStrategy : public WholeSequences {
 public:
  BoardStrategy(Rig& rig, Board& board, std::size_t rank) : rig_(rig), board_(board), rank_(rank) {}
  bool splits_heads() const override { return true; }
  void sequence_to_heads(std::span<const HeadExchange> parts) override { exchange(parts, true); }
  void heads_to_sequence(std::span<const HeadExchange> parts) override { exchange(parts, false); }

 private:
  // Shard s of rank r holds tokens x heads; this rank picks from every other's shard what lies in its own.
  struct Box {
    int64_t t0, t1, h0, h1;
  };
  Box box(std::size_t rank, bool by_heads) const {
    const std::vector<int64_t>&t = board_.token_cuts, &h = board_.head_cuts;
    return by_heads ? Box{0, t.back(), h[rank], h[rank + 1]} : Box{t[rank], t[rank + 1], 0, h.back()};
  }
  void exchange(std::span<const HeadExchange> parts, bool to_heads) {
    std::vector<Values>& own = board_.pieces[rank_];
    own.clear();
    for (const HeadExchange& part : parts) own.push_back(pack(to_heads ? part.sequence : part.heads));
    board_.meet.arrive_and_wait();
    for (std::size_t i = 0; i < parts.size(); ++i) unpack(to_heads ? parts[i].heads : parts[i].sequence, gather(i, parts[i], to_heads));
    board_.meet.arrive_and_wait();
  }
  TensorView dense(const TensorView& like) { return rig_.tensor({like.size(0), like.size(1), like.size(2), like.size(3)}); }
  Values pack(const TensorView& from) {
    const TensorView packed = dense(from);
    rig_.ops().copy(packed, from);
    return rig_.download(packed);
  }
  void unpack(const TensorView& to, const Values& values) {
    const TensorView packed = dense(to);
    rig_.assign(packed, values);
    rig_.ops().copy(to, packed);
  }
  Values gather(std::size_t part, const HeadExchange& views, bool to_heads) const {
    const Box mine = box(rank_, to_heads);
    const int64_t B = views.heads.size(0), D = views.heads.size(3), T = mine.t1 - mine.t0, H = mine.h1 - mine.h0;
    Values out(static_cast<std::size_t>(B * T * H * D));
    for (std::size_t r = 0; r < board_.ranks(); ++r) {
      const Box its = box(r, !to_heads);
      for (int64_t b = 0; b < B; ++b)
        for (int64_t t = std::max(mine.t0, its.t0); t < std::min(mine.t1, its.t1); ++t)
          for (int64_t h = std::max(mine.h0, its.h0); h < std::min(mine.h1, its.h1); ++h)
            for (int64_t d = 0; d < D; ++d)
              out[static_cast<std::size_t>(((b * T + t - mine.t0) * H + h - mine.h0) * D + d)] =
                  board_.pieces[r][part]
                               [static_cast<std::size_t>(((b * (its.t1 - its.t0) + t - its.t0) * (its.h1 - its.h0) + h - its.h0) * D + d)];
    }
    return out;
  }

  Rig& rig_;
  Board& board_;
  std::size_t rank_;
};

// The part of a batch that a rank holds; document starts stay whole.
ReferenceBatch local_part(const ReferenceBatch& batch, int64_t lo, int64_t hi) {
  ReferenceBatch part = batch;
  part.tokens = hi - lo;
  part.input.clear();
  part.target.clear();
  part.position.clear();
  for (int64_t b = 0; b < batch.batch; ++b)
    for (int64_t t = lo; t < hi; ++t) {
      const auto i = static_cast<std::size_t>(b * batch.tokens + t);
      part.input.push_back(batch.input[i]);
      part.target.push_back(batch.target[i]);
      part.position.push_back(batch.position[i]);
    }
  return part;
}

struct RankResult {
  double loss_sum = 0;
  Params gradients;
  Values last_logits;
};

RankResult run_rank(const ModelSpec& spec, const Params& params, const ReferenceBatch& batch, Board& board, std::size_t rank) {
  Rig rig(static_cast<unsigned>(rank) + 1);
  BoardStrategy strategy(rig, board, rank);
  const int64_t lo = board.token_cuts[rank], hi = board.token_cuts[rank + 1];
  const BatchShape shape{.micro_batch = batch.batch,
                         .local_tokens = hi - lo,
                         .tokens = batch.tokens,
                         .first_token = lo,
                         .local_heads = board.head_cuts[rank + 1] - board.head_cuts[rank],
                         .local_kv_heads = board.head_cuts[rank + 1] - board.head_cuts[rank],
                         .splits_heads = true};
  Transformer model(spec);
  ParamBuffers buffers(rig, model.table(), params);
  ActivationPlanner planner;
  model.plan(planner, shape);
  Workspace workspace(rig.device(), planner);
  const ReferenceBatch part = local_part(batch, lo, hi);
  MicroBatch micro_batch;
  micro_batch.tokens = rig.upload(part.input, {shape.rows()});
  micro_batch.targets = rig.upload(part.target, {shape.rows()});
  micro_batch.positions = rig.upload(part.position, {shape.rows()});
  micro_batch.document_start = rig.upload(batch.document_start, {batch.batch, batch.tokens});
  const ModelContext context{rig.ops(), workspace, strategy, rig.wait(), shape, micro_batch, true};
  const TensorView loss = rig.tensor({1}, DType::f64), logits = rig.tensor({1, model.spec().padded_vocab()});
  rig.ops().zero(loss);
  model.forward(context, buffers, loss);
  model.backward(context, buffers, [](int) {});
  RankResult result;
  result.loss_sum = rig.download(loss)[0];
  result.gradients = buffers.read_gradients();
  model.logits(context, buffers, shape.rows() - 1, logits);
  result.last_logits = rig.download(logits);
  result.last_logits.resize(static_cast<std::size_t>(spec.vocab));
  return result;
}

void compare(ModelSpec spec, std::vector<int64_t> token_cuts, std::vector<int64_t> head_cuts) {
  std::mt19937 random(21);
  spec.heads = spec.kv_heads = head_cuts.back();
  const Params params = random_params(spec, random);
  const ReferenceBatch batch = random_batch(spec, 2, token_cuts.back(), random);
  const ReferenceResult want = reference_step(spec, params, batch, true);
  Board board(std::move(token_cuts), std::move(head_cuts));
  std::vector<RankResult> results(board.ranks());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < board.ranks(); ++r)
      threads.emplace_back([&, r] {
        try {
          results[r] = run_rank(spec, params, batch, board, r);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << r << ": " << error.what();
          board.meet.arrive_and_drop();  // the others must not wait
        }
      });
  }
  if (::testing::Test::HasFailure()) return;
  double loss_sum = 0;
  Params gradients;
  for (const RankResult& result : results) {
    loss_sum += result.loss_sum;
    for (const auto& [name, value] : result.gradients) {
      gradients[name].resize(value.size());
      for (std::size_t i = 0; i < value.size(); ++i) gradients[name][i] += value[i];
    }
  }
  EXPECT_NEAR(loss_sum, want.loss_sum, 1e-6 * want.loss_sum);
  expect_close(gradients, want.gradients, 2e-5);
  expect_close(results.back().last_logits, Values(want.logits.end() - spec.vocab, want.logits.end()), 3e-6, "logits of the last token");
}

TEST(SequenceSplit, TwoRanks) {
  compare(small_spec(), {0, 6, 12}, {0, 2, 4});
}
TEST(SequenceSplit, UnevenTokensAndHeads) {
  compare(small_spec(), {0, 6, 13}, {0, 2, 3});
}
TEST(SequenceSplit, ThreeRanks) {
  compare(small_spec(), {0, 4, 9, 13}, {0, 1, 2, 3});
}
TEST(SequenceSplit, LlamaTurnsLocalTokensByTheirPlaceInTheSequence) {
  compare(small_llama(), {0, 6, 13}, {0, 2, 3});
}

}  // namespace
}  // namespace nsp::test
