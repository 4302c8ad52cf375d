#include "core/data/token_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/data/token_file_writer.hpp"
#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

std::string write_shard(const std::string& path, int64_t vocabulary, const std::vector<std::vector<int32_t>>& documents) {
  TokenFileWriter writer(path, vocabulary, "test");
  for (const auto& document : documents) {
    writer.begin_document();
    writer.append(document, static_cast<int64_t>(document.size()) - 1);
  }
  writer.finish();
  return path;
}

std::vector<int32_t> all_tokens(const TokenFile& file) {
  std::vector<int32_t> tokens(static_cast<std::size_t>(file.facts().tokens));
  file.read(0, file.facts().tokens, 0, tokens.data());
  return tokens;
}

TEST(TokenFile, WriteAndReadBack) {
  const TemporaryFolder folder;
  const TokenFile file(write_shard(folder / "a.tokens", 257, {{1, 2, 256}, {255, 256}}));
  EXPECT_EQ(all_tokens(file), (std::vector<int32_t>{1, 2, 256, 255, 256}));
  EXPECT_EQ(file.facts().token_bytes, 2);
  EXPECT_EQ(file.facts().vocabulary, 257);
  EXPECT_EQ(file.facts().tokenizer, "test");
  EXPECT_EQ(file.facts().documents, 2);
  EXPECT_EQ(file.facts().original_bytes, 3);
  ASSERT_EQ(file.document_starts().size(), 2u);
  EXPECT_EQ(file.document_starts()[1], 3u);
  file.verify();
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.tokens"});
}

TEST(TokenFile, LargeVocabularyTakesFourBytes) {
  const TemporaryFolder folder;
  const TokenFile file(write_shard(folder / "a.tokens", 128256, {{70000, 128255, 0}}));
  EXPECT_EQ(file.facts().token_bytes, 4);
  EXPECT_EQ(all_tokens(file), (std::vector<int32_t>{70000, 128255, 0}));
  file.verify();
}

TEST(TokenFile, ManyTokensAcrossBuffers) {
  const TemporaryFolder folder;
  std::vector<int32_t> tokens(1500001);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7919 % 50257);
  const TokenFile file(write_shard(folder / "a.tokens", 50257, {tokens}));
  EXPECT_EQ(all_tokens(file), tokens);
  file.verify();
}

TEST(TokenFile, UnfinishedWriterLeavesNothing) {
  const TemporaryFolder folder;
  {
    TokenFileWriter writer(folder / "a.tokens", 257, "test");
    writer.begin_document();
    writer.append(std::vector<int32_t>(1000000, 5), 1000000);
    EXPECT_EQ(names_in(folder.path()).size(), 1u);
  }
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(TokenFile, WriterRefusesIdsBeyondItsVocabulary) {
  const TemporaryFolder folder;
  TokenFileWriter writer(folder / "a.tokens", 257, "test");
  const std::vector<int32_t> tokens{257};
  EXPECT_THROW(writer.append(tokens, 1), Error);
}

TEST(TokenFile, TruncatedNamesFileAndSizes) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder / "a.tokens", 257, {{1, 2, 3, 4, 256}});
  ASSERT_EQ(std::filesystem::file_size(path), 256u + 16 + 8);
  for (const std::size_t left : {279u, 256u, 100u, 10u}) {
    std::filesystem::resize_file(path, left);
    const std::string text = ERROR_TEXT(ErrorKind::input, TokenFile{path});
    EXPECT_SAYS(text, path + " is truncated");
    EXPECT_SAYS(text, left >= 256 ? "280 bytes" : "256 bytes");
    EXPECT_SAYS(text, "has " + std::to_string(left) + " bytes");
    EXPECT_SAYS(text, "nsp_app prepare again");
  }
  std::filesystem::resize_file(path, 0);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{path}), "is empty");
}

TEST(TokenFile, TooLongIsRefused) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder / "a.tokens", 257, {{1, 256}});
  std::filesystem::resize_file(path, 1000);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{path}), "too long");
}

// Every single flipped bit is found: in the header when the file is opened, elsewhere by verify().
TEST(TokenFile, EveryFlippedBitIsFound) {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder / "a.tokens", 257, {{1, 2, 3, 256}, {9, 256}});
  const std::string good = read_text(path);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    write_text(path, bad);
    EXPECT_THROW(TokenFile(path).verify(), Error) << "bit " << bit;
    if (bit / 8 >= token_header_bytes) continue;
    EXPECT_THROW(TokenFile{path}, Error) << "bit " << bit;
  }
  write_text(path, good);
  TokenFile(path).verify();
}

TEST(TokenFile, StrangersAreNamedForWhatTheyAre) {
  const TemporaryFolder folder;
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{write_text(folder / "x.txt", "hello")}), "is not a token file");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{write_text(folder / "x.bin", "version https://git-lfs.github.com/spec/v1\n")}),
              "git lfs pull");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{folder / "absent.bin"}), "cannot open");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{folder.path()}), "not a plain file");
}

template <class Token>
std::string llmc_file(const std::string& path, const std::vector<Token>& tokens, int32_t magic, int32_t version) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<int32_t>(tokens.size());
  std::string bytes(1024 + sizeof(Token) * tokens.size(), '\0');
  std::memcpy(bytes.data(), header.data(), 1024);
  std::memcpy(bytes.data() + 1024, tokens.data(), sizeof(Token) * tokens.size());
  return write_text(path, bytes);
}

std::string llmc_shard(const std::string& path, const std::vector<uint16_t>& tokens, int32_t version = 1) {
  return llmc_file(path, tokens, 20240520, version);
}

std::string llama_shard(const std::string& path, const std::vector<uint32_t>& tokens, int32_t version = 7) {
  return llmc_file(path, tokens, 20240801, version);
}

TEST(LlmcFile, IsReadAsItIs) {
  const TemporaryFolder folder;
  const TokenFile file(llmc_shard(folder / "a.bin", {5, 50256, 65535}));
  EXPECT_EQ(all_tokens(file), (std::vector<int32_t>{5, 50256, 65535}));
  EXPECT_EQ(file.facts().vocabulary, 0);
  EXPECT_TRUE(file.document_starts().empty());
  file.verify();
}

TEST(LlmcFile, LlamaShardsHave32BitTokens) {
  const TemporaryFolder folder;
  const TokenFile file(llama_shard(folder / "a.bin", {5, 65536, 128000, 0xffffffffu}));
  EXPECT_EQ(file.facts().tokens, 4);
  EXPECT_EQ(file.facts().tokenizer, "llmc-llama3");
  std::vector<int32_t> tokens(3);
  file.read(0, 3, 128256, tokens.data());
  EXPECT_EQ(tokens, (std::vector<int32_t>{5, 65536, 128000}));
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, file.read(1, 3, 128256, tokens.data())), "token 4294967295 at index 3 (byte 1036)");
  std::filesystem::resize_file(file.path(), 1032);  // as many bytes as four 16-bit tokens have
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{folder / "a.bin"}), "1040 bytes");
}

TEST(LlmcFile, OtherVersionsAreNamedBesideWhatIsKnown) {
  const TemporaryFolder folder;
  for (const std::string& path : {llmc_shard(folder / "gpt2.bin", {1}, 7), llama_shard(folder / "llama.bin", {1}, 1)}) {
    const std::string text = ERROR_TEXT(ErrorKind::input, TokenFile{path});
    EXPECT_SAYS(text, path.ends_with("gpt2.bin") ? "number 20240520, version 7" : "number 20240801, version 1");
    EXPECT_SAYS(text, "20240520 version 1 (GPT-2, 16-bit tokens) and 20240801 version 7 (Llama 3, 32-bit tokens)");
  }
}

TEST(LlmcFile, GoldenShard) {
  const char* source = std::getenv("NSP_TEST_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const TokenFile file(std::string(source) + "/tests/golden/llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin");
  EXPECT_EQ(file.facts().tokens, 20000);
  // The rule of make_inputs.py: t' = (31 t + 17 + (0..7)) mod 500.
  const std::vector<int32_t> tokens = all_tokens(file);
  int32_t before = 0;
  for (const int32_t token : tokens) {
    EXPECT_LT((token - (before * 31 + 17) % 500 + 500) % 500, 8);
    before = token;
  }
}

TEST(LlmcFile, TokenOutOfRangeNamesFileOffsetTokenAndVocabulary) {
  const TemporaryFolder folder;
  const TokenFile file(llmc_shard(folder / "a.bin", {5, 6, 50257, 7}));
  std::vector<int32_t> tokens(4);
  file.read(0, 4, 50258, tokens.data());
  const std::string text = ERROR_TEXT(ErrorKind::input, file.read(1, 3, 50257, tokens.data()));
  EXPECT_SAYS(text, "token out of range: " + file.path());
  EXPECT_SAYS(text, "token 50257 at index 2 (byte 1028)");
  EXPECT_SAYS(text, "vocabulary has 50257");
}

TEST(LlmcFile, TruncatedAndOtherVersionsAreRefused) {
  const TemporaryFolder folder;
  const std::string path = llmc_shard(folder / "a.bin", {1, 2, 3});
  std::filesystem::resize_file(path, 1029);
  const std::string text = ERROR_TEXT(ErrorKind::input, TokenFile{path});
  EXPECT_SAYS(text, "1030 bytes");
  EXPECT_SAYS(text, "1029 bytes");
  std::filesystem::resize_file(path, 600);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{path}), "is truncated");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, TokenFile{llmc_shard(folder / "b.bin", {1}, 7)}), "version 7");
}

TEST(LlmcFile, IdentityFollowsContent) {
  const TemporaryFolder folder;
  std::vector<uint16_t> tokens(400000, 3);
  const uint64_t before = TokenFile(llmc_shard(folder / "a.bin", tokens)).identity();
  EXPECT_EQ(TokenFile(llmc_shard(folder / "b.bin", tokens)).identity(), before);
  tokens.back() = 4;
  EXPECT_NE(TokenFile(llmc_shard(folder / "c.bin", tokens)).identity(), before);
  tokens.back() = 3;
  tokens.push_back(3);
  EXPECT_NE(TokenFile(llmc_shard(folder / "d.bin", tokens)).identity(), before);
}

}  // namespace
}  // namespace nsp
