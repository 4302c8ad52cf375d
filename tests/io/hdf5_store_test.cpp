// What happens to files: torn, damaged, missing, left over, no room.
#include "io/hdf5_store.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "io/durable.hpp"
#include "io/memory_store.hpp"
#include "io/step_folder.hpp"
#include "sample_checkpoint.hpp"
#include "temp_folder.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}
std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}
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
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Hdf5StoreFiles : public testing::Test {
 protected:
  TempFolder folder_;
  std::string dir_ = folder_ / "run/checkpoints";
  Hdf5Store store_{dir_};
};

TEST_F(Hdf5StoreFiles, NamesAreThoseOfTheContract) {
  write_sample(store_, 200, 2);
  EXPECT_EQ(files_in(dir_), std::set<std::string>{"step_00000200"});
  EXPECT_EQ(files_in(dir_ + "/step_00000200"),
            (std::set<std::string>{"manifest.h5", "r7_00000200_rank_0000.h5", "r7_00000200_rank_0001.h5"}));
  write_sample(store_, 123456789, 1);  // more than eight digits
  EXPECT_EQ(store_.list(), (std::vector<int64_t>{200, 123456789}));
  fs::create_directories(dir_ + "/step_200");
  fs::create_directories(dir_ + "/step_0000020x");
  EXPECT_EQ(store_.list().size(), 2u);
}

TEST_F(Hdf5StoreFiles, ARankWithoutDataHasNoShard) {
  write_sample(store_, 1, 1);
  auto pieces = store_.open(1)->pieces();
  std::vector<PieceRecord> all = write_shards(store_, 2, 1);
  auto idle = store_.begin(2, 1, sample_run, 0);
  idle->put("/model/half", DType::bf16, {9, 7}, 63, nullptr, 0);
  const auto none = idle->finish();
  all.insert(all.end(), none.begin(), none.end());
  store_.commit(2, sample_run, {}, all);
  EXPECT_EQ(files_in(dir_ + "/step_00000002"), (std::set<std::string>{"manifest.h5", "r7_00000002_rank_0000.h5"}));
  EXPECT_EQ(compare_sample(*store_.open(2), 2), "");
}

TEST_F(Hdf5StoreFiles, AShardGivenUpLeavesNothing) {
  {
    auto shard = store_.begin(9, 0, sample_run, 1000);
    put_sample(*shard, 9, 0, 2);
    EXPECT_EQ(files_in(dir_ + "/step_00000009").size(), 1u);
  }
  EXPECT_TRUE(files_in(dir_ + "/step_00000009").empty());
  store_.rollback(9);
  EXPECT_FALSE(fs::exists(dir_ + "/step_00000009"));
}

TEST_F(Hdf5StoreFiles, ATornManifestIsAnInputError) {
  write_sample(store_, 1, 2);
  const std::string path = dir_ + "/step_00000001/manifest.h5", whole = bytes_of(path);
  for (std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{95}, std::size_t{2048}, whole.size() / 2, whole.size() - 1}) {
    write_bytes(path, whole.substr(0, length));
    EXPECT_TRUE(has(error_of(ErrorKind::input, [&] { store_.open(1); }), "manifest.h5")) << length;
  }
  write_bytes(path, "version https://example.org/ this is no HDF5 file at all, but long enough to be asked for its signature");
  error_of(ErrorKind::input, [&] { store_.open(1); });
  EXPECT_EQ(store_.list(), std::vector<int64_t>{1});  // list does not verify
  write_bytes(path, whole);
  EXPECT_EQ(compare_sample(*store_.open(1), 1), "");
}

// HDF5 itself is not safe from damaged files, so any flipped byte must be found before it sees the file.
TEST_F(Hdf5StoreFiles, AnyFlippedByteInTheManifestIsRefused) {
  write_sample(store_, 1, 2);
  const std::string path = dir_ + "/step_00000001/manifest.h5", whole = bytes_of(path);
  std::vector<std::size_t> places{whole.size() - 1, whole.size() - 9, whole.size() - 17};  // in the seal itself
  for (std::size_t at = 0; at < whole.size(); at += at % 5 == 0 ? 997 : 2389) places.push_back(at);
  for (const char* text : {"[model]", "/model/half", "r7", "xxh64"}) places.push_back(whole.find(text));
  for (std::size_t at : places) {
    ASSERT_LT(at, whole.size());
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_bytes(path, damaged);
    EXPECT_TRUE(has(error_of(ErrorKind::input, [&] { store_.open(1); }), "manifest.h5")) << at;
  }
  write_bytes(path, whole + "x");  // something behind the seal
  error_of(ErrorKind::input, [&] { store_.open(1); });
}

TEST_F(Hdf5StoreFiles, AFlippedByteInAShardIsNamed) {
  write_sample(store_, 1, 2);
  const std::string shard = dir_ + "/step_00000001/r7_00000001_rank_0001.h5";
  std::string bytes = bytes_of(shard);
  const SampleTensor& tensor = sample_tensors()[0];
  int64_t lo = 0, hi = 0;
  sample_cut(tensor, 1, 2, &lo, &hi);
  const std::vector<char> data = sample_bytes(tensor, 1, lo, hi);
  const std::size_t at = bytes.find(std::string(data.begin(), data.end()));
  ASSERT_NE(at, std::string::npos);  // pieces lie in the file as they were
  bytes[at + data.size() - 1] = static_cast<char>(bytes[at + data.size() - 1] ^ 1);
  write_bytes(shard, bytes);
  auto reader = store_.open(1);
  std::vector<float> out(400);
  reader->get(tensor.name, tensor.dtype, 0, lo, out.data());  // the other shard is good
  const std::string text = error_of(ErrorKind::input, [&] { reader->get(tensor.name, tensor.dtype, lo, 1, out.data()); });
  EXPECT_TRUE(has(text, "r7_00000001_rank_0001.h5") && has(text, tensor.name) && has(text, "checksum")) << text;
  const std::string found = reader->verify();
  EXPECT_TRUE(has(found, tensor.name) && !has(found, "\n")) << found;  // this piece and no other
}

TEST_F(Hdf5StoreFiles, MissingTruncatedAndForeignShards) {
  write_sample(store_, 1, 3);
  const std::string shard = dir_ + "/step_00000001/r7_00000001_rank_0001.h5", whole = bytes_of(shard);
  std::vector<float> out(400);
  const auto text_of = [&] {
    auto reader = store_.open(1);
    EXPECT_NE(reader->verify(), "");
    return error_of(ErrorKind::input, [&] { reader->get("/model/embedding.wte", DType::f32, 0, 400, out.data()); });
  };
  write_bytes(shard, whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(has(text_of(), "rank_0001"));
  write_bytes(shard, "");
  EXPECT_TRUE(has(text_of(), "rank_0001"));
  fs::copy_file(dir_ + "/step_00000001/r7_00000001_rank_0000.h5", shard, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has(text_of(), "rank_0001"));  // readable, but not this shard
  fs::remove(shard);
  EXPECT_TRUE(has(text_of(), "is missing"));
  // HDF5's view would take a file of that name from the current directory; nsp must not.
  const fs::path before = fs::current_path();
  fs::create_directories(folder_ / "elsewhere");
  fs::current_path(folder_ / "elsewhere");
  write_bytes("r7_00000001_rank_0001.h5", whole);
  EXPECT_TRUE(has(text_of(), "is missing"));
  fs::current_path(before);
}

TEST_F(Hdf5StoreFiles, AMovedFolderIsReadAndARenamedStepIsNot) {
  write_sample(store_, 1, 2);
  fs::rename(folder_ / "run", folder_ / "moved");
  Hdf5Store moved(folder_ / "moved/checkpoints");
  EXPECT_EQ(compare_sample(*moved.open(1), 1), "");
  fs::rename(moved.where(1), moved.where(2));
  EXPECT_TRUE(has(error_of(ErrorKind::input, [&] { moved.open(2); }), "of step 1"));
}

TEST_F(Hdf5StoreFiles, CommitWithoutAShardFailsAndRollbackCleans) {
  const auto pieces = write_shards(store_, 1, 2);
  fs::remove(dir_ + "/step_00000001/r7_00000001_rank_0001.h5.tmp");
  EXPECT_TRUE(has(error_of(ErrorKind::io, [&] { store_.commit(1, sample_run, {}, pieces); }), "rank_0001"));
  EXPECT_TRUE(store_.list().empty());
  store_.rollback(1);
  EXPECT_FALSE(fs::exists(dir_ + "/step_00000001"));
  EXPECT_NO_THROW(store_.rollback(77));  // nothing there
}

TEST_F(Hdf5StoreFiles, ReplacingAStepRemovesTheOldShards) {
  write_sample(store_, 1, 5);
  write_sample(store_, 1, 2);
  EXPECT_EQ(files_in(dir_ + "/step_00000001").size(), 3u);
  auto pieces = write_shards(store_, 1, 2);
  for (PieceRecord& piece : pieces) piece.name += "x";  // a manifest of tensors that no shard holds is a bug elsewhere; reading says so
  store_.commit(1, sample_run, {}, pieces);
  EXPECT_NE(store_.open(1)->verify(), "");
}

TEST_F(Hdf5StoreFiles, PruneRemovesLeftOversOlderThanTheNewest) {
  write_sample(store_, 10, 1);
  write_shards(store_, 20, 2);  // never committed
  write_sample(store_, 30, 1);
  write_sample(store_, 40, 1);
  write_bytes(dir_ + "/step_00000030/manifest.h5", "torn");
  write_shards(store_, 50, 1);  // being written
  write_bytes(dir_ + "/notes.txt", "mine");
  store_.prune(2, 0);
  EXPECT_EQ(files_in(dir_), (std::set<std::string>{"step_00000010", "step_00000040", "step_00000050", "notes.txt"}));
  EXPECT_EQ(store_.list(), (std::vector<int64_t>{10, 40}));
}

TEST_F(Hdf5StoreFiles, NoFolderNoPermissionAndBadRunIds) {
  write_bytes(folder_ / "run", "a file where the folder should be");
  error_of(ErrorKind::io, [&] { store_.begin(1, 0, sample_run, 10); });
  EXPECT_TRUE(store_.list().empty());
  store_.prune(1, 0);
  fs::remove(folder_ / "run");
  for (const char* run : {"", "a/b", "a%b", "a b", ".x"}) error_of(ErrorKind::internal, [&] { store_.begin(1, 0, run, 10); });
  const std::string text = error_of(ErrorKind::io, [&] { store_.begin(1, 0, sample_run, int64_t{1} << 60); });
  EXPECT_TRUE(has(text, "1152921504606846976 bytes") && has(text, "are free")) << text;
  EXPECT_TRUE(!fs::exists(dir_ + "/step_00000001"));
}

TEST_F(Hdf5StoreFiles, ManyPiecesAndManyShardsOfOneTensor) {
  constexpr int ranks = 150;  // more than a reader keeps open
  std::vector<PieceRecord> all;
  for (int rank = 0; rank < ranks; ++rank) {
    auto shard = store_.begin(1, rank, sample_run, 8);
    const float value = static_cast<float>(rank);
    shard->put("/model/a", DType::f32, {ranks, 1}, rank, &value, 1);
    shard->put("/model/b", DType::f32, {ranks}, ranks - 1 - rank, &value, 1);
    const auto pieces = shard->finish();
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  store_.commit(1, sample_run, {}, all);
  auto reader = store_.open(1);
  std::vector<float> a(ranks), b(ranks);
  reader->get("/model/a", DType::f32, 0, ranks, a.data());
  reader->get("/model/b", DType::f32, 0, ranks, b.data());
  for (int i = 0; i < ranks; ++i) {
    EXPECT_EQ(a[static_cast<std::size_t>(i)], static_cast<float>(i));
    EXPECT_EQ(b[static_cast<std::size_t>(i)], static_cast<float>(ranks - 1 - i));
  }
}

// Ranks that are threads: HDF5 itself is not thread-safe.
TEST_F(Hdf5StoreFiles, ThreadsAsRanks) {
  constexpr int ranks = 4;
  std::vector<std::vector<PieceRecord>> pieces(ranks);
  std::vector<std::string> found(ranks, "not read");
  const auto on_all = [](const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  };
  for (int64_t step : {1, 2, 3}) {
    on_all([&](int rank) {
      Hdf5Store own(dir_);
      auto shard = own.begin(step, rank, sample_run, sample_size());
      put_sample(*shard, step, rank, ranks);
      pieces[static_cast<std::size_t>(rank)] = shard->finish();
    });
    std::vector<PieceRecord> all;
    for (const auto& some : pieces) all.insert(all.end(), some.begin(), some.end());
    store_.commit(step, sample_run, {}, all);
    on_all([&](int rank) { found[static_cast<std::size_t>(rank)] = compare_sample(*Hdf5Store(dir_).open(step), step); });
    EXPECT_EQ(found, std::vector<std::string>(ranks));
  }
}

// A small file system of its own, so that it can be full.
class Hdf5StoreFullDisk : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    fs::create_directories(mount_);
    mounted_ = ::geteuid() == 0 && ::mount("tmpfs", mount_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) GTEST_SKIP() << "mounting a tmpfs needs root";
  }
  void TearDown() override {
    if (mounted_) ::umount2(mount_.c_str(), MNT_DETACH);
  }
  TempFolder folder_;
  std::string mount_ = folder_ / "small";
  bool mounted_ = false;
};

TEST_P(Hdf5StoreFullDisk, FailsKeepsTheOldOnesAndGoesOn) {
  Hdf5Store store(mount_ + "/checkpoints");
  write_sample(store, 1, 2);
  const std::vector<float> data(static_cast<std::size_t>(GetParam()), 1.0f);
  for (int attempt = 0; attempt < 2; ++attempt) {
    error_of(ErrorKind::io, [&] {
      auto shard = store.begin(2, 0, sample_run, 0);  // says less than it puts, as if others filled the disk meanwhile
      for (int i = 0; i < 100000; ++i) shard->put("/model/t" + std::to_string(i), DType::f32, {GetParam()}, 0, data.data(), GetParam());
      shard->finish();
    });
    store.rollback(2);
  }
  EXPECT_EQ(store.list(), std::vector<int64_t>{1});
  EXPECT_EQ(compare_sample(*store.open(1), 1), "");
  write_sample(store, 3, 2);  // room again
  EXPECT_EQ(compare_sample(*store.open(3), 3), "");
}

TEST_P(Hdf5StoreFullDisk, AFullDiskAtCommitFailsTheCheckpointOnly) {
  Hdf5Store store(mount_ + "/checkpoints");
  write_sample(store, 1, 2);
  const auto pieces = write_shards(store, 2, 2);
  {
    std::ofstream filler(mount_ + "/filler", std::ios::binary);
    const std::string block(4096, 'x');
    while (filler << block << std::flush) {
    }
  }
  error_of(ErrorKind::io, [&] { store.commit(2, sample_run, sample_attributes(2), pieces); });
  store.rollback(2);
  EXPECT_EQ(store.list(), std::vector<int64_t>{1});
  EXPECT_EQ(compare_sample(*store.open(1), 1), "");
}

TEST_P(Hdf5StoreFullDisk, TwoRanksThatTogetherDoNotFitAreStoppedAtTheBeginning) {
  Hdf5Store store(mount_ + "/checkpoints");
  auto first = store.begin(1, 0, sample_run, 600000);
  const std::string text = error_of(ErrorKind::io, [&] { store.begin(1, 1, sample_run, 600000); });
  EXPECT_TRUE(has(text, "free")) << text;
  first.reset();
  auto second = store.begin(1, 1, sample_run, 600000);  // its room was given back
  const std::vector<float> data(150000, 2.0f);
  second->put("/model/a", DType::f32, {150000}, 0, data.data(), 150000);
  store.commit(1, sample_run, {}, second->finish());
  EXPECT_EQ(store.open(1)->verify(), "");
}

INSTANTIATE_TEST_SUITE_P(Sizes, Hdf5StoreFullDisk, testing::Values(2, 1000, 20000, 200000));

}  // namespace
}  // namespace nsp::test
