// Text that is not what one hopes for: JSONL with broken lines, other encodings, line ends, lines without end.
#include "core/data/document_reader.hpp"

#include <gtest/gtest.h>

#include "core/data/prepare.hpp"
#include "core/data/token_source.hpp"
#include "core/data/utf8.hpp"
#include "nsp/error.hpp"
#include "tests/data/prepared_documents.hpp"

namespace nsp {
namespace {

Documents read(const std::string& path) {
  Documents out;
  std::string document;
  read_documents(path, "text", [&](std::string_view piece, bool ends) {
    document += piece;
    if (ends) out.push_back(std::exchange(document, ""));
  });
  return out;
}

TEST(Utf8, WellFormedAndNot) {
  EXPECT_EQ(first_bad_utf8(""), std::string::npos);
  EXPECT_EQ(first_bad_utf8("plain text of more than eight bytes"), std::string::npos);
  EXPECT_EQ(first_bad_utf8("\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), std::string::npos);
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3(", "\xE2\x82("}) {
    EXPECT_EQ(first_bad_utf8(bad), 0u) << bad;
    EXPECT_EQ(first_bad_utf8("0123456789" + std::string(bad)), 10u) << bad;
  }
}

TEST(DocumentReader, JsonLinesThatAreBrokenNameFileAndLine) {
  const TemporaryFolder folder;
  const std::string good = "{\"text\":\"a\"}\n";
  struct Case {
    std::string line, says;
  };
  for (const Case& c : std::vector<Case>{{"{\"text\":\"caf\xE9\"}", "line 3: bytes that are not UTF-8 at column 13"},
                                         {"{\"other\":\"a\"}", "line 3: no member 'text'"},
                                         {"{\"text\":null}", "line 3: 'text' is not a string"},
                                         {"{\"text\":\"\\ud83d\"}", "line 3: half of a surrogate pair"},
                                         {"{\"text\":\"\\ude00\"}", "line 3: half of a surrogate pair"},
                                         {"{\"text\":\"\\ud83d\\u0041\"}", "line 3: half of a surrogate pair"},
                                         {"{\"text\":\"\\x41\"}", "line 3: an unknown escape"},
                                         {"{\"text\":\"a\tb\"}", "line 3: a control character in a string"},
                                         {"[\"a\"]", "line 3: '{' is missing"},
                                         {"{\"text\":\"a\"", "line 3: '}' is missing"}}) {
    write_text(folder / "a.jsonl", good + "\r\n" + c.line + "\n" + good);
    const std::string text = ERROR_TEXT(ErrorKind::input, read(folder / "a.jsonl"));
    EXPECT_SAYS(text, "a.jsonl " + c.says);
    EXPECT_SAYS(text, "--text-key");
  }
}

TEST(DocumentReader, JsonLinesMayBeLongButNotEndless) {
  const TemporaryFolder folder;
  const std::string text(5 << 20, 'x');  // five blocks
  write_text(folder / "a.jsonl", "{\"text\":\"" + text + "\"}\r\n{\"text\":\"b\"}");
  EXPECT_EQ(read(folder / "a.jsonl"), (Documents{text, "b"}));
  write_text(folder / "a.jsonl", "{\"text\":\"b\"}\n{\"text\":\"" + std::string((64 << 20) + 1, 'x'));
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, read(folder / "a.jsonl")), "a.jsonl line 2: it is longer than 64 MiB");
}

TEST(DocumentReader, TextFilesAreKeptByteForByte) {
  const TemporaryFolder folder;
  for (const std::string& bytes : {std::string("one\r\ntwo\r\n"), std::string("\xEF\xBB\xBFmark"), std::string("latin-1: caf\xE9"),
                                   std::string("\x1B[0m\x01\x02"), std::string("no end of line"), std::string("\r\r\n\n")}) {
    write_text(folder / "a.txt", bytes);
    EXPECT_EQ(read(folder / "a.txt"), Documents{bytes});
    PrepareOptions options = options_of({folder / "a.txt"}, folder / "out", 0);
    prepare(options);
    EXPECT_EQ(documents_of(folder / "out", "train"), Documents{bytes});
  }
}

TEST(DocumentReader, TellsOfEveryByteItRead) {
  const TemporaryFolder folder;
  write_text(folder / "a.txt", std::string((2 << 20) + 7, 'x'));
  write_text(folder / "b.jsonl", "{\"text\":\"a\"}\n\n");
  for (const auto& [name, size] : {std::pair{"a.txt", (2 << 20) + 7}, std::pair{"b.jsonl", 14}}) {
    std::size_t told = 0;
    read_documents(
        folder / name, "text", [](std::string_view, bool) {}, [&](std::size_t bytes) { told += bytes; });
    EXPECT_EQ(told, static_cast<std::size_t>(size));
  }
}

// A document of many windows: each begins anew at position 0, and no border appears inside it.
TEST(TokenSource, ADocumentLongerThanTheContextFillsWindows) {
  const TemporaryFolder folder;
  write_text(folder / "a.txt", std::string(1000, 'a'));
  prepare(options_of({folder / "a.txt"}, folder / "out", 0));
  TokenSourceOptions options;
  options.path = folder / "out";
  options.context = 64;
  const auto source = open_train(options);
  ASSERT_EQ(source->samples(), 15);  // of 1001 tokens
  std::vector<int32_t> tokens(65), starts(64);
  for (int64_t sample = 0; sample < 15; ++sample) {
    source->read(sample, tokens.data(), starts.data());
    EXPECT_EQ(tokens, std::vector<int32_t>(65, 'a'));
    EXPECT_EQ(starts, std::vector<int32_t>(64, 0));
  }
}

TEST(Prepare, ProgressRisesToTheEndAndMayEndIt) {
  const TemporaryFolder folder;
  write_text(folder / "text/a", std::string(3 << 20, 'a'));
  write_text(folder / "text/b", std::string(1 << 20, 'b'));
  write_text(folder / "text/binary", std::string(1 << 20, '\0'));
  PrepareOptions options = options_of({folder / "text"}, folder / "out");
  int64_t last = 0, end = 0, calls = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
    end = total;
    ++calls;
  };
  prepare(options);
  EXPECT_EQ(last, 8 << 20);
  EXPECT_EQ(end, 8 << 20);
  EXPECT_GE(calls, 8);
  for (const int64_t limit : {1 << 20, 6 << 20}) {  // in the first and in the second reading
    options.output = folder / "ended";
    options.threads = limit == 1 << 20 ? 3 : 1;
    options.progress = [&](int64_t done, int64_t) {
      if (done >= limit) throw 42;
    };
    EXPECT_THROW(prepare(options), int);
    EXPECT_EQ(names_in(folder.path()), (Documents{"out", "text"}));
  }
}

}  // namespace
}  // namespace nsp
