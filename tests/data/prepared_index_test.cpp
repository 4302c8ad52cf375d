#include "core/data/prepared_index.hpp"

#include <gtest/gtest.h>

#include "core/data/token_source.hpp"
#include "nsp/error.hpp"
#include "tests/data/prepared_documents.hpp"

namespace nsp {
namespace {

TEST(PreparedIndex, DamageIsFoundAndNamed) {
  const TemporaryFolder folder;
  plant(folder, 20);
  prepare(options_of({folder / "text"}, folder / "out"));
  const std::string path = folder / "out/prepare.ini", good = read_text(path);
  int refused = 0;
  for (std::size_t left = 0; left + 1 < good.size(); ++left) {  // the last line break may be missing
    write_text(path, good.substr(0, left));
    EXPECT_THROW(read_prepared_index(folder / "out"), Error) << left;
    ++refused;
  }
  EXPECT_GT(refused, 200);
  std::string bad = good;
  bad.replace(bad.find("vocabulary = 257"), 16, "vocabulary = 2x7");
  write_text(path, bad);
  const std::string text = ERROR_TEXT(ErrorKind::input, read_prepared_index(folder / "out"));
  EXPECT_SAYS(text, path);
  EXPECT_SAYS(text, "'2x7'");
}

TEST(PreparedIndex, ShardsOutsideTheFolderAreRefused) {
  const TemporaryFolder folder;
  PreparedIndex index;
  index.tokenizer = "bytes";
  index.vocabulary = 257;
  index.train.push_back({"train_00000.tokens", 10, 1, 5});
  write_prepared_index(index, folder.path());
  EXPECT_EQ(read_prepared_index(folder.path()).train.size(), 1u);
  index.train[0].name = "../train_00000.tokens";
  write_prepared_index(index, folder.path());
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, read_prepared_index(folder.path())), "no shard name");
}

TEST(PreparedIndex, ValPathTakesTheHeldOutSplit) {
  const TemporaryFolder folder;
  plant(folder, 60);
  prepare(options_of({folder / "text"}, folder / "a", 0.2));
  prepare(options_of({folder / "text"}, folder / "b", 0.5));
  TokenSourceOptions options;
  options.path = folder / "a";
  options.context = 4;
  const std::string own = open_val(options)->fingerprint();
  options.val_path = folder / "b";
  EXPECT_NE(open_val(options)->fingerprint(), own);
  options.path = folder / "b";
  const std::string other = open_val(options)->fingerprint();
  options.val_path.clear();
  EXPECT_EQ(open_val(options)->fingerprint(), other);
}

TEST(PreparedIndex, MixedUpShardIsFound) {
  const TemporaryFolder folder;
  plant(folder, 20);
  prepare(options_of({folder / "text"}, folder / "a"));
  auto reseeded = options_of({folder / "text"}, folder / "b", 0.5);
  prepare(reseeded);
  std::filesystem::copy_file(folder / "b/train_00000.tokens", folder / "a/train_00000.tokens",
                             std::filesystem::copy_options::overwrite_existing);
  TokenSourceOptions options;
  options.path = folder / "a";
  options.context = 4;
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options)), "is not the shard that");
  std::filesystem::remove(folder / "a/train_00000.tokens");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options)), "cannot open token file");
}

}  // namespace
}  // namespace nsp
