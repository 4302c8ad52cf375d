// The faults that the store in memory makes on request.
#include "io/memory_store.hpp"

#include <gtest/gtest.h>

#include "sample_checkpoint.hpp"

namespace nsp::test {
namespace {

template <class Call>
std::string error_of(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(MemoryStore, TheNthPutFailsOnce) {
  MemoryStore store;
  write_sample(store, 1, 2);
  store.fail(MemoryStore::Operation::put, 3);
  error_of(ErrorKind::io, [&] { write_sample(store, 2, 2); });
  EXPECT_EQ(store.uncommitted_pieces(), 0u);  // the only open shard went with its writer
  store.rollback(2);
  EXPECT_EQ(store.list(), std::vector<int64_t>{1});
  write_sample(store, 2, 2);
  EXPECT_EQ(compare_sample(*store.open(2), 2), "");
}

TEST(MemoryStore, FailedFinishAndCommitLeaveTheOldOnes) {
  MemoryStore store;
  write_sample(store, 1, 2);
  store.fail(MemoryStore::Operation::finish, 2);  // rank 0 finished, rank 1 did not
  error_of(ErrorKind::io, [&] { write_sample(store, 2, 2); });
  EXPECT_GT(store.uncommitted_pieces(), 0u);
  store.rollback(2);
  EXPECT_EQ(store.uncommitted_pieces(), 0u);
  store.fail(MemoryStore::Operation::commit, 1);
  error_of(ErrorKind::io, [&] { write_sample(store, 3, 2); });
  EXPECT_EQ(store.list(), std::vector<int64_t>{1});
  EXPECT_EQ(compare_sample(*store.open(1), 1), "");
}

TEST(MemoryStore, AFullMediumIsFoundAtTheBeginning) {
  MemoryStore store;
  store.set_free_bytes(100);
  const std::string text = error_of(ErrorKind::io, [&] { store.begin(1, 0, sample_run, 101); });
  EXPECT_NE(text.find("101"), std::string::npos);
  EXPECT_NE(text.find("100"), std::string::npos);
  store.begin(1, 0, sample_run, 100);
}

TEST(MemoryStore, DamageIsFoundAndNamed) {
  MemoryStore store;
  write_sample(store, 1, 2);
  write_sample(store, 2, 2);
  write_sample(store, 3, 2);
  store.corrupt_piece(2, "/model/half", 0);
  store.drop_piece(1, "/model/half", 0);
  store.tear_manifest(3);
  EXPECT_NE(error_of(ErrorKind::input, [&] { store.open(3); }).find("torn"), std::string::npos);
  for (int64_t step : {1, 2}) {
    auto reader = store.open(step);
    EXPECT_NE(error_of(ErrorKind::input, [&] { compare_sample(*reader, step); }).find("/model/half"), std::string::npos);
    const std::string found = reader->verify();
    EXPECT_NE(found.find("/model/half"), std::string::npos);
    EXPECT_EQ(found.find("wte"), std::string::npos);
  }
}

TEST(MemoryStore, APartOfADamagedPieceIsRefusedToo) {
  MemoryStore store;
  write_sample(store, 1, 1);
  store.corrupt_piece(1, "/model/embedding.wte", 0);  // the bit is in the middle; the first element itself is right
  float out = 0;
  error_of(ErrorKind::input, [&] { store.open(1)->get("/model/embedding.wte", DType::f32, 0, 1, &out); });
}

TEST(MemoryStore, PruneCountsNoTornOnesAsKept) {
  MemoryStore store;
  for (int64_t step : {1, 2, 3, 4}) write_sample(store, step, 1);
  store.tear_manifest(3);
  store.tear_manifest(4);
  store.prune(1, 0);
  EXPECT_EQ(store.list(), (std::vector<int64_t>{2, 3, 4}));  // 3 and 4 are newer than the newest good one
  write_sample(store, 5, 1);
  store.prune(1, 0);
  EXPECT_EQ(store.list(), std::vector<int64_t>{5});
}

}  // namespace
}  // namespace nsp::test
