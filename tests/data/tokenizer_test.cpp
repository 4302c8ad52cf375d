#include "core/data/tokenizer.hpp"

#include <gtest/gtest.h>

#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

TEST(ByteTokenizer, EveryByteThereAndBack) {
  const auto tokenizer = make_tokenizer("bytes");
  EXPECT_EQ(tokenizer->id(), "bytes");
  EXPECT_EQ(tokenizer->vocabulary(), 257);
  EXPECT_EQ(tokenizer->end_of_document(), 256);
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  std::vector<int32_t> tokens;
  tokenizer->encode(text, tokens);
  ASSERT_EQ(tokens.size(), 256u);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(tokens[static_cast<std::size_t>(i)], i);
  tokens.push_back(256);  // ends the document, is no text
  EXPECT_EQ(tokenizer->decode(tokens), text);
  tokenizer->encode("more", tokens);
  EXPECT_EQ(tokens.size(), 261u);
}

TEST(ByteTokenizer, IdsOfAnotherVocabularyAreRefused) {
  const auto tokenizer = make_tokenizer("bytes");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, tokenizer->decode(std::vector<int32_t>{65, 257})), "token 257");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, tokenizer->decode(std::vector<int32_t>{-1})), "token -1");
}

TEST(Tokenizer, UnknownNameSaysWhatThereIs) {
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::usage, make_tokenizer("gpt2")), "Use --tokenizer bytes");
}

}  // namespace
}  // namespace nsp
