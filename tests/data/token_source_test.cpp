#include "core/data/token_source.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/data/prepared_index.hpp"
#include "core/data/token_file_writer.hpp"
#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

struct Shard {
  std::vector<int32_t> tokens;
  std::vector<std::size_t> starts;  // documents that begin here
};

void write_shard(const std::string& path, const Shard& shard, int64_t vocabulary = 1000, const char* tokenizer = "test") {
  TokenFileWriter writer(path, vocabulary, tokenizer);
  for (std::size_t i = 0; i < shard.tokens.size(); ++i) {
    if (std::find(shard.starts.begin(), shard.starts.end(), i) != shard.starts.end()) writer.begin_document();
    writer.append(std::span(&shard.tokens[i], 1), 2);
  }
  writer.finish();
}

// 0, 1, 2, ... over shards of the given sizes.
void write_counting(const TemporaryFolder& folder, const std::vector<int>& sizes, const std::vector<int>& document_starts) {
  int next = 0;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    Shard shard;
    for (int i = 0; i < sizes[s]; ++i, ++next) {
      if (std::find(document_starts.begin(), document_starts.end(), next) != document_starts.end())
        shard.starts.push_back(shard.tokens.size());
      shard.tokens.push_back(next);
    }
    const char name[] = {'s', static_cast<char>('0' + s), '\0'};
    write_shard(folder / (std::string(name) + ".tokens"), shard);
  }
}

TokenSourceOptions options_of(const std::string& path, int64_t context, double val_fraction = 0) {
  TokenSourceOptions options;
  options.path = path;
  options.context = context;
  options.val_fraction = val_fraction;
  options.verify = true;
  return options;
}

TEST(TokenSource, WindowsRunAcrossShards) {
  const TemporaryFolder folder;
  const std::vector<int> starts{0, 3, 4, 9, 13, 16, 17};
  write_counting(folder, {5, 0, 1, 7, 9}, starts);  // 22 tokens; one shard is empty, one has a single token, one begins with a document
  for (int context = 1; context <= 21; ++context) {
    auto source = open_train(options_of(folder / "*.tokens", context));
    EXPECT_EQ(source->samples(), 21 / context);
    for (int64_t sample = 0; sample < source->samples(); ++sample) {
      std::vector<int32_t> tokens(static_cast<std::size_t>(context) + 1, -1), documents(static_cast<std::size_t>(context), -1);
      source->read(sample, tokens.data(), documents.data());
      int start = 0;
      for (int i = 0; i < context; ++i) {
        const int at = static_cast<int>(sample) * context + i;
        EXPECT_EQ(tokens[static_cast<std::size_t>(i)], at);
        if (std::find(starts.begin(), starts.end(), at) != starts.end()) start = i;
        EXPECT_EQ(documents[static_cast<std::size_t>(i)], start) << "context " << context << " sample " << sample << " position " << i;
      }
      EXPECT_EQ(tokens.back(), (sample + 1) * context);
      std::vector<int32_t> without(tokens.size(), -1);
      source->read(sample, without.data(), nullptr);
      EXPECT_EQ(without, tokens);
    }
  }
}

TEST(TokenSource, FactsComeFromTheShards) {
  const TemporaryFolder folder;
  write_counting(folder, {10, 11}, {0});
  auto source = open_train(options_of(folder / "*.tokens", 5));
  EXPECT_EQ(source->vocabulary(), 1000);
  EXPECT_EQ(source->tokenizer(), "test");
  EXPECT_EQ(source->bytes_per_token(), 2);
  EXPECT_TRUE(source->knows_documents());
}

TEST(TokenSource, ReadingPastTheEndIsABug) {
  const TemporaryFolder folder;
  write_counting(folder, {11}, {0});
  auto source = open_train(options_of(folder / "*.tokens", 5));
  std::vector<int32_t> tokens(6);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::internal, source->read(2, tokens.data(), nullptr)), "within the source");
}

TEST(TokenSource, FingerprintFollowsContentAndHeldOutPartNotNames) {
  const TemporaryFolder a, b;
  write_counting(a, {30, 12}, {0});
  std::filesystem::copy(a / "s0.tokens", b / "x0.tokens");
  std::filesystem::copy(a / "s1.tokens", b / "x1.tokens");
  const std::string print = open_train(options_of(a / "*.tokens", 5))->fingerprint();
  EXPECT_EQ(open_train(options_of(b / "*.tokens", 5))->fingerprint(), print);
  EXPECT_NE(open_train(options_of(b / "x1.tokens," + (b / "x0.tokens"), 5, 0.3))->fingerprint(), print);
  EXPECT_NE(open_train(options_of(a / "s0.tokens", 5))->fingerprint(), print);
  EXPECT_NE(open_train(options_of(a / "*.tokens", 5, 0.5))->fingerprint(), open_train(options_of(a / "*.tokens", 5, 0.3))->fingerprint());
  std::filesystem::rename(b / "x0.tokens", b / "x2.tokens");  // another order is another stream
  EXPECT_NE(open_train(options_of(b / "*.tokens", 5))->fingerprint(), print);
}

TEST(TokenSource, LastWindowsOfPlainFilesAreHeldOut) {
  const TemporaryFolder folder;
  write_counting(folder, {60, 41}, {0});  // 20 windows of 5
  const auto options = options_of(folder / "*.tokens", 5, 0.15);
  auto train = open_train(options), val = open_val(options);
  EXPECT_EQ(train->samples(), 17);
  EXPECT_EQ(val->samples(), 3);
  std::vector<int32_t> tokens(6);
  val->read(0, tokens.data(), nullptr);
  EXPECT_EQ(tokens, (std::vector<int32_t>{85, 86, 87, 88, 89, 90}));
  EXPECT_NE(train->fingerprint(), val->fingerprint());
  EXPECT_EQ(open_val(options_of(folder / "*.tokens", 5, 0)), nullptr);
  EXPECT_EQ(open_train(options_of(folder / "*.tokens", 5, 0.001))->samples(), 19);  // at least one window
}

TEST(TokenSource, ValPathTakesPlaceOfTheHeldOutPart) {
  const TemporaryFolder folder;
  write_shard(folder / "train.tokens", {std::vector<int32_t>(101, 1), {0}});
  write_shard(folder / "val.tokens", {std::vector<int32_t>(31, 2), {0}});
  auto options = options_of(folder / "train.tokens", 5, 0.5);
  options.val_path = folder / "val.tokens";
  EXPECT_EQ(open_train(options)->samples(), 20);
  EXPECT_EQ(open_val(options)->samples(), 6);
}

TEST(TokenSource, TooShortSaysWhatToDo) {
  const TemporaryFolder folder;
  write_counting(folder, {64}, {0});
  const std::string text = ERROR_TEXT(ErrorKind::input, open_train(options_of(folder / "*.tokens", 64)));
  EXPECT_SAYS(text, "64 tokens, one window takes 65");
  EXPECT_SAYS(text, "train.context");
}

TEST(TokenSource, ShardsOfTwoTokenizersAreRefused) {
  const TemporaryFolder folder;
  write_shard(folder / "a.tokens", {{1, 2, 3}, {0}}, 1000, "test");
  write_shard(folder / "b.tokens", {{1, 2, 3}, {0}}, 1000, "other");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_of(folder / "*.tokens", 2))), "do not belong together");
}

TEST(TokenSource, PlainFolderNamesTheCure) {
  const TemporaryFolder folder;
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_of(folder.path(), 2))), "is not a prepared folder");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_of(folder / "*.bin", 2))), "no file matches");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_of("", 2))), "data.path is empty");
}

TEST(TokenSource, CorruptShardIsFoundWhenVerified) {
  const TemporaryFolder folder;
  write_counting(folder, {50}, {0});
  std::string bytes = read_text(folder / "s0.tokens");
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  write_text(folder / "s0.tokens", bytes);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_of(folder / "*.tokens", 5))), "is damaged");
}

std::string golden(const char* split) {
  return std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_" + split +
         ".bin";
}

TEST(TokenSource, LlmcFilesKnowNoDocuments) {
  auto options = options_of(golden("train"), 64, 0.05);
  options.val_path = golden("val");
  auto train = open_train(options), val = open_val(options);
  EXPECT_EQ(train->samples(), 19999 / 64);
  EXPECT_EQ(val->samples(), 4999 / 64);
  EXPECT_EQ(train->vocabulary(), 0);
  EXPECT_EQ(train->bytes_per_token(), 0);
  EXPECT_FALSE(train->knows_documents());
  std::vector<int32_t> tokens(65), documents(64, 9);
  const std::string bytes = read_text(golden("train"));
  train->read(11, tokens.data(), documents.data());
  for (std::size_t i = 0; i < 65; ++i) {
    uint16_t token;
    std::memcpy(&token, bytes.data() + 1024 + 2 * (11 * 64 + i), 2);
    EXPECT_EQ(tokens[i], token);
  }
  EXPECT_EQ(documents, std::vector<int32_t>(64, 0));
}

TEST(TokenSource, ModelVocabularyBoundsTheTokens) {
  auto train = open_train(options_of(golden("train"), 64));
  std::vector<int32_t> tokens(65);
  train->limit_vocabulary(500);
  for (int64_t i = 0; i < train->samples(); ++i) train->read(i, tokens.data(), nullptr);
  train->limit_vocabulary(400);
  const std::string text =
      ERROR_TEXT(ErrorKind::input, for (int64_t i = 0; i < train->samples(); ++i) train->read(i, tokens.data(), nullptr));
  EXPECT_SAYS(text, "token out of range");
  EXPECT_SAYS(text, "vocabulary has 400");
  const TemporaryFolder folder;
  write_counting(folder, {20}, {0});
  auto known = open_train(options_of(folder / "*.tokens", 2));
  known->limit_vocabulary(1000);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::usage, known->limit_vocabulary(999)), "model.vocab is 999, the data needs 1000");
}

}  // namespace
}  // namespace nsp
