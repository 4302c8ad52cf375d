// Several corpora with weights: what data.path means, which samples a run sees, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/data/corpus_list.hpp"
#include "core/data/prepare.hpp"
#include "core/data/token_file_writer.hpp"
#include "core/data/token_source.hpp"
#include "nsp/error.hpp"
#include "tests/data/prepared_documents.hpp"

namespace nsp {
namespace {

constexpr int64_t context = 4;

// A token file of `windows` windows whose tokens are all `token`.
std::string write_windows(const std::string& path, int64_t windows, int32_t token, const char* tokenizer = "test") {
  TokenFileWriter writer(path, 1000, tokenizer);
  writer.begin_document();
  const std::vector<int32_t> tokens(static_cast<std::size_t>(windows * context + 1), token);
  writer.append(tokens, static_cast<int64_t>(tokens.size()));
  writer.finish();
  return path;
}

TokenSourceOptions options_for(const std::string& path, double val_fraction = 0) {
  TokenSourceOptions options;
  options.path = path;
  options.context = context;
  options.val_fraction = val_fraction;
  return options;
}

int32_t first_token(TokenSource& source, int64_t sample) {
  int32_t tokens[context + 1];
  source.read(sample, tokens, nullptr);
  return tokens[0];
}

TEST(CorpusList, PathsWeightsAndLists) {
  const TemporaryFolder folder;
  const auto list = [](const std::string& text) { return read_corpus_list(text, "data.path"); };
  EXPECT_EQ(list("a.bin,b.bin").size(), 1u);
  EXPECT_EQ(list("a.bin, b.bin").front().paths, (std::vector<std::string>{"a.bin", "b.bin"}));
  const auto mix = list("data/a:3, x*.bin:0.5");
  ASSERT_EQ(mix.size(), 2u);
  EXPECT_EQ(mix[0].paths.front(), "data/a");
  EXPECT_EQ(mix[0].weight, 3);
  EXPECT_EQ(mix[1].paths.front(), "x*.bin");
  EXPECT_EQ(mix[1].weight, 0.5);
  EXPECT_EQ(list("C:data").front().paths.front(), "C:data");  // no number, no weight
  write_text(folder / "odd:1", "");
  write_text(folder / "with,comma", "");
  EXPECT_EQ(list(folder / "odd:1").front().weight, 0);
  EXPECT_EQ(list((folder / "odd:1") + ":2").front().weight, 2);
  EXPECT_EQ(list(folder / "with,comma").front().paths.front(), folder / "with,comma");
  EXPECT_EQ(list(folder.path() + "," + (folder / "odd:1")).size(), 2u);  // a folder makes it a mixture
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, list("a:1,b")), "none to 'b'");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, list("a:0,b:1")), "'a:0' no usable weight");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, list("a:-2")), "no usable weight");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, list("a:inf")), "no usable weight");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, list(" , ")), "data.path is empty");
}

TEST(Mixture, EveryStepHasTheProportionsAndEveryCorpusItsOwnEpochs) {
  const std::vector<CorpusShare> corpora{{"a", 100, 3}, {"b", 7, 1}};
  for (const bool shuffle : {false, true}) {
    const BatchOrder order(corpora, 8, shuffle, 5);
    std::map<int64_t, int> seen;
    for (int64_t step = 0; step < 70; ++step) {  // 560 samples: 420 of a (4.2 epochs), 140 of b (20 epochs)
      int of_b = 0;
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t sample = order.sample(step, i);
        ASSERT_GE(sample, 0);
        ASSERT_LT(sample, 107);
        ++seen[sample];
        of_b += sample >= 100;
      }
      EXPECT_EQ(of_b, 2);
    }
    for (int64_t sample = 100; sample < 107; ++sample) EXPECT_EQ(seen[sample], 20);
    for (int64_t sample = 0; sample < 100; ++sample) {
      EXPECT_GE(seen[sample], 4);
      EXPECT_LE(seen[sample], 5);
    }
    EXPECT_EQ(order.position(70), "sample 560; a: epoch 5, 20 of 100; b: epoch 21, 0 of 7");
  }
}

TEST(Mixture, WithoutShuffleCorporaAreInFileOrder) {
  const BatchOrder order({{"a", 10, 2}, {"b", 10, 1}}, 3, false, 1);
  std::vector<int64_t> a, b;
  for (int64_t step = 0; step < 5; ++step)
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t sample = order.sample(step, i);
      (sample < 10 ? a : b).push_back(sample);
    }
  EXPECT_EQ(a, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(b, (std::vector<int64_t>{10, 11, 12, 13, 14}));
}

TEST(Mixture, ShuffleDependsOnSeedEpochAndCorpusAndSpreadsOverTheBatch) {
  const std::vector<CorpusShare> corpora{{"a", 1000, 1}, {"b", 1000, 1}};
  const auto samples = [&](uint64_t seed, int64_t first, bool of_b) {
    const BatchOrder order(corpora, 10, true, seed);
    std::vector<int64_t> out;
    for (int64_t n = first; n < first + 2000; ++n)
      if (const int64_t sample = order.sample(n / 10, n % 10); (sample >= 1000) == of_b) out.push_back(sample % 1000);
    return out;
  };
  EXPECT_EQ(samples(1, 0, false), samples(1, 0, false));
  EXPECT_NE(samples(1, 0, false), samples(2, 0, false));
  EXPECT_NE(samples(1, 0, false), samples(1, 2000, false));
  EXPECT_NE(samples(1, 0, false), samples(1, 0, true));
  // Two corpora of equal weight alternate; the first place of a step must not always be of the same one.
  const BatchOrder order(corpora, 10, true, 1);
  int first_is_b = 0;
  for (int64_t step = 0; step < 200; ++step) first_is_b += order.sample(step, 0) >= 1000;
  EXPECT_GT(first_is_b, 60);
  EXPECT_LT(first_is_b, 140);
}

TEST(Mixture, ReadsEachCorpusAndFingerprintsAll) {
  const TemporaryFolder folder;
  const std::string a = write_windows(folder / "a.tokens", 30, 1), b = write_windows(folder / "b.tokens", 10, 2);
  const auto source = open_train(options_for(a + ":1," + b + ":3"));
  EXPECT_EQ(source->samples(), 40);
  ASSERT_EQ(source->corpora().size(), 2u);
  EXPECT_EQ(source->corpora()[1].weight, 3);
  EXPECT_EQ(source->corpora()[1].name, b);
  for (int64_t sample = 0; sample < 40; ++sample) EXPECT_EQ(first_token(*source, sample), sample < 30 ? 1 : 2);
  const std::string print = source->fingerprint();
  EXPECT_EQ(open_train(options_for(a + ":2," + b + ":6"))->fingerprint(), print);
  EXPECT_NE(open_train(options_for(a + ":1," + b + ":2"))->fingerprint(), print);
  EXPECT_NE(open_train(options_for(b + ":3," + a + ":1"))->fingerprint(), print);
  EXPECT_NE(open_train(options_for(a + "," + b))->fingerprint(), print);
  write_windows(b, 10, 3);
  EXPECT_NE(open_train(options_for(a + ":1," + b + ":3"))->fingerprint(), print);
}

TEST(Mixture, HeldOutSamplesFollowTheWeightsAndAllAppearOnce) {
  const TemporaryFolder folder;
  const std::string a = write_windows(folder / "a.tokens", 80, 1), b = write_windows(folder / "b.tokens", 20, 2);
  const std::string list = a + ":1," + b + ":1";
  EXPECT_EQ(open_train(options_for(list, 0.5))->samples(), 50);
  const auto val = open_val(options_for(list, 0.5));
  ASSERT_EQ(val->samples(), 50);
  int of_b = 0;
  for (int64_t sample = 0; sample < 20; ++sample) of_b += first_token(*val, sample) == 2;
  EXPECT_EQ(of_b, 10);
  for (int64_t sample = 20; sample < 50; ++sample) of_b += first_token(*val, sample) == 2;
  EXPECT_EQ(of_b, 10);
}

TEST(Mixture, PreparedFoldersMixBySizeWithoutWeights) {
  const TemporaryFolder folder;
  for (int i = 0; i < 40; ++i) write_text(folder / ("large/" + std::to_string(i)), number_text(i) + std::string(30, 'x'));
  for (int i = 0; i < 10; ++i) write_text(folder / ("small/" + std::to_string(i)), number_text(i) + std::string(30, 'y'));
  prepare(options_of({folder / "large"}, folder / "a"));
  prepare(options_of({folder / "small"}, folder / "b"));
  const auto source = open_train(options_for((folder / "a") + "," + (folder / "b")));
  ASSERT_EQ(source->corpora().size(), 2u);
  const auto& corpora = source->corpora();
  EXPECT_NEAR(static_cast<double>(corpora[0].weight) / static_cast<double>(corpora[1].weight),
              static_cast<double>(corpora[0].samples) / static_cast<double>(corpora[1].samples), 1e-3);
  const BatchOrder order(corpora, 5, true, 1);
  EXPECT_SAYS(order.coverage(100), "data: " + (folder / "a") + ": ");
  EXPECT_SAYS(order.coverage(100), " epochs in 100 steps");
}

TEST(Mixture, OtherTokenizersAndShortCorporaAreRefused) {
  const TemporaryFolder folder;
  const std::string a = write_windows(folder / "a.tokens", 30, 1), b = write_windows(folder / "b.tokens", 10, 2, "other"),
                    c = write_windows(folder / "c.tokens", 0, 2);
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_for(a + ":1," + b + ":1"))), "do not belong together");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_for(a + ":1," + c + ":1"))), "c.tokens is too short");
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, open_train(options_for(a + ":1," + (folder / "none.tokens:1")))), "none.tokens");
}

}  // namespace
}  // namespace nsp
