// What nsp/checkpoint_store.hpp promises, for the store on files and the one in memory alike.
#include <gtest/gtest.h>

#include <cstring>

#include "io/hdf5_store.hpp"
#include "io/memory_store.hpp"
#include "sample_checkpoint.hpp"
#include "temp_folder.hpp"

namespace nsp::test {
namespace {

class StoreContract : public testing::TestWithParam<const char*> {
 protected:
  StoreContract() {
    if (std::string(GetParam()) == "hdf5")
      store_ = std::make_unique<Hdf5Store>(folder_ / "checkpoints");
    else
      store_ = std::make_unique<MemoryStore>();
  }
  ErrorKind kind_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      text_ = error.what();
      return error.kind();
    }
    ADD_FAILURE() << "no error";
    return ErrorKind::internal;
  }
  TempFolder folder_;
  std::unique_ptr<CheckpointStore> store_;
  std::string text_;
};

TEST_P(StoreContract, ReadsBackWhatRanksWrote) {
  for (int ranks : {1, 2, 3, 5}) {
    write_sample(*store_, 100 + ranks, ranks);
    auto reader = store_->open(100 + ranks);
    EXPECT_EQ(reader->step(), 100 + ranks);
    EXPECT_EQ(reader->attributes(), sample_attributes(100 + ranks));
    EXPECT_EQ(compare_sample(*reader, 100 + ranks), "") << ranks;
    EXPECT_EQ(reader->verify(), "");
  }
  EXPECT_EQ(store_->list(), (std::vector<int64_t>{101, 102, 103, 105}));
}

TEST_P(StoreContract, ReadsAnyRange) {
  write_sample(*store_, 5, 3);
  auto reader = store_->open(5);
  const SampleTensor& tensor = sample_tensors()[0];
  for (int64_t lo = 0; lo < 400; lo += 37) {
    for (int64_t hi = lo; hi <= 400; hi += 61) {
      std::vector<char> got(static_cast<std::size_t>(hi - lo) * 4);
      reader->get(tensor.name, tensor.dtype, lo, hi - lo, got.data());
      EXPECT_EQ(got, sample_bytes(tensor, 5, lo, hi));
    }
  }
}

TEST_P(StoreContract, RefusesWhatIsNotThere) {
  EXPECT_TRUE(store_->list().empty());
  EXPECT_EQ(kind_of([&] { store_->open(7); }), ErrorKind::input);
  write_sample(*store_, 7, 2);
  auto reader = store_->open(7);
  float out[8];
  EXPECT_FALSE(reader->has("/model/absent"));
  EXPECT_EQ(kind_of([&] { reader->shape("/model/absent"); }), ErrorKind::input);
  EXPECT_EQ(kind_of([&] { reader->get("/model/absent", DType::f32, 0, 1, out); }), ErrorKind::input);
  EXPECT_NE(text_.find("/model/absent"), std::string::npos);
  EXPECT_EQ(kind_of([&] { reader->get("/model/blocks.0.ln1.weight", DType::f32, 5, 4, out); }), ErrorKind::input);
  EXPECT_EQ(kind_of([&] { reader->get("/model/blocks.0.ln1.weight", DType::i32, 0, 4, out); }), ErrorKind::input);
}

TEST_P(StoreContract, NothingExistsBeforeTheCommit) {
  write_sample(*store_, 1, 2);
  const auto pieces = write_shards(*store_, 2, 2);
  EXPECT_EQ(store_->list(), std::vector<int64_t>{1});
  EXPECT_EQ(kind_of([&] { store_->open(2); }), ErrorKind::input);
  store_->rollback(2);
  EXPECT_EQ(store_->list(), std::vector<int64_t>{1});
  EXPECT_EQ(compare_sample(*store_->open(1), 1), "");
}

TEST_P(StoreContract, AnUnfinishedShardLeavesEarlierOnesAlone) {
  write_sample(*store_, 1, 2);
  {
    auto again = store_->begin(1, 0, sample_run, sample_size());  // of the same step, and given up
    put_sample(*again, 99, 0, 2);
  }
  EXPECT_EQ(compare_sample(*store_->open(1), 1), "");
  write_shards(*store_, 1, 2);
  store_->rollback(1);
  EXPECT_EQ(compare_sample(*store_->open(1), 1), "");
  EXPECT_EQ(store_->open(1)->verify(), "");
}

TEST_P(StoreContract, ACommitReplacesTheSameStep) {
  write_sample(*store_, 4, 5);
  write_sample(*store_, 4, 2);
  auto reader = store_->open(4);
  EXPECT_EQ(compare_sample(*reader, 4), "");
  for (const PieceRecord& piece : reader->pieces()) EXPECT_LT(piece.rank, 2);
}

TEST_P(StoreContract, ACommitWithAGapOrAnOverlapIsRefused) {
  auto pieces = write_shards(*store_, 3, 2);
  auto gap = pieces;
  gap.erase(gap.begin());
  EXPECT_EQ(kind_of([&] { store_->commit(3, sample_run, {}, gap); }), ErrorKind::inconsistent);
  EXPECT_NE(text_.find("/model/embedding.wte"), std::string::npos);
  auto twice = pieces;
  twice.push_back(pieces.front());
  EXPECT_EQ(kind_of([&] { store_->commit(3, sample_run, {}, twice); }), ErrorKind::inconsistent);
  EXPECT_TRUE(store_->list().empty());
}

TEST_P(StoreContract, PruneKeepsTheNewestAndEveryMth) {
  for (int64_t step : {10, 20, 30, 40, 50, 60}) write_sample(*store_, step, 1);
  store_->prune(2, 20);
  EXPECT_EQ(store_->list(), (std::vector<int64_t>{20, 40, 50, 60}));
  store_->prune(1, 0);
  EXPECT_EQ(store_->list(), std::vector<int64_t>{60});
  store_->prune(0, 0);  // the newest stays, whatever is asked
  EXPECT_EQ(store_->list(), std::vector<int64_t>{60});
  EXPECT_EQ(compare_sample(*store_->open(60), 60), "");
}

// A run that went on from step 20 and wrote 25: what it left behind beyond that must not push the new one out, nor be resumed from.
TEST_P(StoreContract, PruneRemovesWhatLiesBeyondTheLastCommit) {
  for (int64_t step : {10, 20, 30, 40}) write_sample(*store_, step, 1);
  write_sample(*store_, 25, 1);
  store_->prune(1, 20);
  EXPECT_EQ(store_->list(), (std::vector<int64_t>{20, 25}));
}

TEST_P(StoreContract, PutChecksItsArguments) {
  auto shard = store_->begin(1, 0, sample_run, 100);
  float data[4] = {};
  EXPECT_EQ(kind_of([&] { shard->put("no slash", DType::f32, {4}, 0, data, 4); }), ErrorKind::internal);
  EXPECT_EQ(kind_of([&] { shard->put("/a", DType::f32, {3}, 0, data, 4); }), ErrorKind::internal);
  shard->put("/a", DType::f32, {4}, 0, data, 4);
  shard->finish();
  EXPECT_EQ(kind_of([&] { shard->put("/b", DType::f32, {4}, 0, data, 4); }), ErrorKind::internal);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::Values("hdf5", "memory"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace nsp::test
