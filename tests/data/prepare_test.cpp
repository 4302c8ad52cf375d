#include "core/data/prepare.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/data/token_source.hpp"
#include "nsp/error.hpp"
#include "tests/data/prepared_documents.hpp"

namespace nsp {
namespace {

TEST(Prepare, EveryFileIsADocumentOfOneSplit) {
  const TemporaryFolder folder;
  plant(folder, 200);
  const PrepareReport report = prepare(options_of({folder / "text"}, folder / "out", 0.1));
  Documents expected;
  for (int i = 0; i < 200; ++i) expected.push_back(number_text(i));
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all_documents(folder / "out"), expected);
  const std::size_t held = documents_of(folder / "out", "val").size();
  EXPECT_GE(held, 8u);  // expected 20, standard deviation 4.2
  EXPECT_LE(held, 32u);
  EXPECT_EQ(report.files, 200);
  EXPECT_EQ(report.documents, 200);
  EXPECT_EQ(names_in(folder / "out"), (Documents{"prepare.ini", "train_00000.tokens", "val_00000.tokens"}));
  EXPECT_EQ(names_in(folder.path()), (Documents{"out", "text"}));
  const Documents train = documents_of(folder / "out", "train");
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end(),
                             [](const auto& a, const auto& b) { return std::stoi(a.substr(9)) < std::stoi(b.substr(9)); }));
}

TEST(Prepare, TwiceGivesEqualBits) {
  const TemporaryFolder folder;
  plant(folder, 50);
  auto options = options_of({folder / "text"}, folder / "a");
  options.shard_tokens = 100;
  const PrepareReport first = prepare(options);
  options.output = folder / "b";
  options.inputs = {folder / "text/*4.txt", folder / "text/**"};
  prepare(options);
  EXPECT_GT(names_in(folder / "a").size(), 5u);
  ASSERT_EQ(names_in(folder / "a"), names_in(folder / "b"));
  for (const std::string& name : names_in(folder / "a"))
    EXPECT_EQ(read_text(folder / ("a/" + name)), read_text(folder / ("b/" + name))) << name;
  EXPECT_EQ(first.index.fingerprint(), read_prepared_index(folder / "b").fingerprint());
}

TEST(Prepare, ThreadsDoNotChangeABit) {
  const TemporaryFolder folder;
  plant(folder, 60);
  write_text(folder / "text/empty", "");
  write_text(folder / "text/binary", std::string(100, '\0'));
  for (int f = 0; f < 6; ++f) {
    std::string lines;
    for (int i = 0; i < 50 * f; ++i) lines += "{\"text\":\"" + (i % 7 == 0 ? "" : std::to_string(1000 * f + i)) + "\"}\n";
    write_text(folder / ("text/" + std::to_string(f) + ".jsonl"), lines);
  }
  auto options = options_of({folder / "text"}, folder / "one", 0.2);
  const PrepareReport one = prepare(options);
  for (const int threads : {2, 4, 16}) {
    options.output = folder / "many";
    options.threads = threads;
    int64_t last = 0;
    options.progress = [&](int64_t done, int64_t total) {
      EXPECT_LE(done, total);
      last = done;
    };
    const PrepareReport many = prepare(options);
    EXPECT_GT(last, 0);
    EXPECT_EQ(many.skipped, one.skipped);
    EXPECT_EQ(many.documents, one.documents);
    ASSERT_EQ(names_in(folder / "many"), names_in(folder / "one"));
    for (const std::string& name : names_in(folder / "one"))
      EXPECT_EQ(read_text(folder / ("many/" + name)), read_text(folder / ("one/" + name))) << name;
  }
}

TEST(Prepare, OfSeveralBadFilesTheFirstIsNamedWhateverTheThreads) {
  const TemporaryFolder folder;
  plant(folder, 30);
  for (const char* name : {"b", "c", "d", "e"}) write_text(folder / ("text/" + std::string(name) + ".jsonl"), "{\"text\":1}\n");
  std::string late;
  for (int i = 0; i < 20000; ++i) late += "{\"text\":\"a\"}\n";
  write_text(folder / "text/a.jsonl", late + "{\"text\":1}\n");  // found last
  for (const int threads : {1, 4}) {
    auto options = options_of({folder / "text"}, folder / "out");
    options.threads = threads;
    EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare(options)), "a.jsonl line 20001");
    EXPECT_EQ(names_in(folder.path()), Documents{"text"});
  }
}

TEST(Prepare, SplitFollowsContentAndSeedNotNames) {
  const TemporaryFolder folder;
  plant(folder, 100);
  for (int i = 0; i < 100; ++i) write_text(folder / ("other/z" + std::to_string(100 - i)), number_text(i));
  prepare(options_of({folder / "text"}, folder / "a", 0.2));
  prepare(options_of({folder / "other"}, folder / "b", 0.2));
  auto reseeded = options_of({folder / "text"}, folder / "c", 0.2);
  reseeded.seed = 2;
  prepare(reseeded);
  const auto held = [&](const char* name) {
    const Documents documents = documents_of(folder / name, "val");
    return std::set<std::string>(documents.begin(), documents.end());
  };
  EXPECT_EQ(held("a"), held("b"));
  EXPECT_NE(held("a"), held("c"));
}

TEST(Prepare, EqualDocumentsAreOnOneSide) {
  const TemporaryFolder folder;
  plant(folder, 40);
  for (int i = 0; i < 40; ++i) write_text(folder / ("text/copy" + std::to_string(i)), number_text(i));
  prepare(options_of({folder / "text"}, folder / "out", 0.3));
  const Documents train = documents_of(folder / "out", "train"), val = documents_of(folder / "out", "val");
  EXPECT_EQ(train.size() + val.size(), 80u);
  for (const std::string& document : val) EXPECT_EQ(std::count(train.begin(), train.end(), document), 0) << document;
}

TEST(Prepare, TwoDocumentsFillBothSplits) {
  for (const double fraction : {1e-12, 0.5, 0.999999}) {
    const TemporaryFolder folder;
    plant(folder, 2);
    prepare(options_of({folder / "text"}, folder / "out", fraction));
    EXPECT_EQ(documents_of(folder / "out", "train").size(), 1u);
    EXPECT_EQ(documents_of(folder / "out", "val").size(), 1u);
  }
}

TEST(Prepare, FractionZeroHoldsNothingOut) {
  const TemporaryFolder folder;
  plant(folder, 3);
  prepare(options_of({folder / "text"}, folder / "out", 0));
  EXPECT_EQ(documents_of(folder / "out", "train").size(), 3u);
  EXPECT_EQ(names_in(folder / "out"), (Documents{"prepare.ini", "train_00000.tokens"}));
  TokenSourceOptions options;
  options.path = folder / "out";
  options.context = 8;
  EXPECT_EQ(open_val(options), nullptr);
  options.val_path = options.path;
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_val(options)), "has no held-out split");
}

TEST(Prepare, OneDocumentIsCutAtATokenBorderAndSaysSo) {
  const TemporaryFolder folder;
  write_text(folder / "a.txt", std::string(60, 'a') + std::string(39, 'b'));
  const PrepareReport report = prepare(options_of({folder / "a.txt"}, folder / "out", 0.25));
  EXPECT_EQ(documents_of(folder / "out", "train"), Documents{std::string(60, 'a') + std::string(15, 'b') + "..."});
  EXPECT_EQ(documents_of(folder / "out", "val"), Documents{std::string(24, 'b')});
  EXPECT_EQ(TokenFile(folder / "out/train_00000.tokens").facts().original_bytes, 75);
  EXPECT_EQ(TokenFile(folder / "out/val_00000.tokens").facts().original_bytes, 24);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_SAYS(report.text(), "its last 25 of 100 tokens are held out");
}

TEST(Prepare, OnlyEqualDocumentsAreTakenForOne) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) write_text(folder / ("text/" + std::string(name)), "0123456789");
  const PrepareReport report = prepare(options_of({folder / "text"}, folder / "out", 0.4));
  EXPECT_EQ(documents_of(folder / "out", "train"), Documents{"0123456..."});
  EXPECT_EQ(documents_of(folder / "out", "val"), Documents{"789"});
  EXPECT_EQ(report.skipped.at("documents equal to another"), 2);
}

TEST(Prepare, ShardsAreCutAnywhereAndReadAsOneStream) {
  const TemporaryFolder folder;
  plant(folder, 30);
  auto options = options_of({folder / "text"}, folder / "whole", 0.2);
  prepare(options);
  options.output = folder / "cut";
  options.shard_tokens = 7;
  prepare(options);
  TokenSourceOptions source;
  source.context = 16;
  source.path = folder / "whole";
  auto whole = open_train(source);
  source.path = folder / "cut";
  auto cut = open_train(source);
  ASSERT_EQ(whole->samples(), cut->samples());
  EXPECT_GT(whole->samples(), 10);
  for (int64_t i = 0; i < whole->samples(); ++i) {
    std::vector<int32_t> a(17), b(17), a_documents(16), b_documents(16);
    whole->read(i, a.data(), a_documents.data());
    cut->read(i, b.data(), b_documents.data());
    EXPECT_EQ(a, b);
    EXPECT_EQ(a_documents, b_documents);
  }
  EXPECT_EQ(whole->tokenizer(), "bytes");
  EXPECT_EQ(whole->vocabulary(), 257);
  EXPECT_NEAR(whole->bytes_per_token(), 12.0 / 13.0, 0.05);
  EXPECT_EQ(cut->bytes_per_token(), whole->bytes_per_token());
}

TEST(Prepare, LargeFileCrossesBlocks) {
  const TemporaryFolder folder;
  std::string text(2 * 1048576 + 5, 'x');  // and one that ends exactly with a block
  text[1048576] = 'y';
  write_text(folder / "text/a", text);
  write_text(folder / "text/b", std::string(1048576, 'z'));
  prepare(options_of({folder / "text"}, folder / "out"));
  EXPECT_EQ(all_documents(folder / "out"), (Documents{text, std::string(1048576, 'z')}));
}

TEST(Prepare, BytesAreKeptAsTheyAre) {
  const TemporaryFolder folder;
  const Documents texts{"a\r\nb\r\n", "\xEF\xBB\xBFmark", "caf\xC3\xA9 \xFF\xFE"};
  for (std::size_t i = 0; i < texts.size(); ++i) write_text(folder / ("text/" + std::to_string(i)), texts[i]);
  prepare(options_of({folder / "text"}, folder / "out"));
  Documents expected = texts;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all_documents(folder / "out"), expected);
}

TEST(Prepare, EmptyBinaryAndHiddenFilesAreCounted) {
  const TemporaryFolder folder;
  plant(folder, 2);
  write_text(folder / "text/empty", "");
  write_text(folder / "text/binary", std::string(8191, 'a') + std::string(1, '\0'));
  write_text(folder / "text/late", std::string(8192, 'a') + std::string(1, '\0'));  // beyond the part that is looked at
  write_text(folder / "text/.hidden", "x");
  const PrepareReport report = prepare(options_of({folder / "text"}, folder / "out"));
  EXPECT_EQ(report.files, 3);
  EXPECT_EQ(report.skipped, (std::map<std::string, int64_t>{{"binary files", 1}, {"empty files", 1}, {"hidden files", 1}}));
  EXPECT_SAYS(report.text(), "1 binary files, 1 empty files, 1 hidden files");
}

TEST(Prepare, JsonLinesAreDocuments) {
  const TemporaryFolder folder;
  write_text(folder / "a.jsonl", "\xEF\xBB\xBF{\"text\":\"one\\n\",\"id\":1}\r\n\n{\"text\":\"\"}\n{\"body\":\"x\",\"text\":\"two\"}");
  write_text(folder / "b.txt", "three");
  const PrepareReport report = prepare(options_of({folder / "*.*"}, folder / "out"));
  EXPECT_EQ(all_documents(folder / "out"), (Documents{"one\n", "three", "two"}));
  EXPECT_EQ(report.files, 2);
  EXPECT_EQ(report.documents, 3);
  EXPECT_EQ(report.skipped.at("empty documents"), 1);
  auto other_key = options_of({folder / "a.jsonl"}, folder / "out2");
  other_key.text_key = "body";
  const std::string text = ERROR_TEXT(ErrorKind::input, prepare(other_key));
  EXPECT_SAYS(text, "a.jsonl line 1: no member 'body'");
  EXPECT_SAYS(text, "--text-key");
  EXPECT_FALSE(std::filesystem::exists(folder / "out2"));
}

}  // namespace
}  // namespace nsp
