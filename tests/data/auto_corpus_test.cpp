#include "core/data/auto_corpus.hpp"

#include <gtest/gtest.h>

#include "core/data/prepared_index.hpp"
#include "core/data/token_source.hpp"
#include "nsp/error.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {
namespace {

void silent(const std::string&) {}

int64_t bytes_in(const std::string& folder) {
  return read_prepared_index(folder).original_bytes;
}

TEST(AutoCorpus, TakesHeadersOnly) {
  const TemporaryFolder folder;
  for (const char* name : {"a.h", "x/b.hpp", "c.hh", "c++/12/vector"})
    write_text(folder / ("include/" + std::string(name)), std::string(name) + "0123456789");
  for (const char* name : {"d.txt", "README", "e.c", "c++/12/f.tcc"}) write_text(folder / ("include/" + std::string(name)), "not wanted");
  AutoCorpusOptions options;
  options.roots = {folder / "include", folder / "absent"};
  std::string line;
  const std::string path = prepare_auto_corpus(folder / "run", options, [&](const std::string& said) { line = said; });
  EXPECT_EQ(path, folder / "run/data");
  EXPECT_EQ(bytes_in(path), 3 + 7 + 4 + 13 + 4 * 10);
  EXPECT_SAYS(line, "4 C and C++ headers");
}

TEST(AutoCorpus, BudgetIsKeptAndTheChoiceIsASpread) {
  const TemporaryFolder folder;
  for (int i = 0; i < 400; ++i)
    write_text(folder / ("include/" + std::string(i < 200 ? "a/" : "b/") + std::to_string(i) + ".h"),
               std::string(100, 'x') + std::to_string(i));
  AutoCorpusOptions options;
  options.roots = {folder / "include"};
  options.budget_bytes = 10000;
  const std::string path = prepare_auto_corpus(folder / "run", options, silent);
  EXPECT_LE(bytes_in(path), 10000);
  EXPECT_GT(bytes_in(path), 9000);
  TokenSourceOptions source;
  source.path = path;
  source.context = 1;
  auto train = open_train(source);
  // The number behind the x's says which folder a document is from.
  std::vector<int32_t> tokens(2);
  int first_half = 0, second_half = 0;
  std::string number;
  for (int64_t i = 0; i < train->samples(); ++i) {
    train->read(i, tokens.data(), nullptr);
    if (tokens[0] >= '0' && tokens[0] <= '9') number.push_back(static_cast<char>(tokens[0]));
    if (tokens[0] == 256) {
      ++(std::stoi(number) < 200 ? first_half : second_half);
      number.clear();
    }
  }
  EXPECT_GT(first_half, 20);
  EXPECT_GT(second_half, 20);
}

TEST(AutoCorpus, KeepsWhatIsThereAndWhole) {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) write_text(folder / ("include/" + std::to_string(i) + ".h"), "int f" + std::to_string(i) + "();\n");
  AutoCorpusOptions options;
  options.roots = {folder / "include"};
  const std::string path = prepare_auto_corpus(folder / "run", options, silent);
  const std::string print = read_prepared_index(path).fingerprint();
  write_text(folder / "include/new.h", "int g();\n");  // a package was installed meanwhile
  std::string line;
  prepare_auto_corpus(folder / "run", options, [&](const std::string& said) { line = said; });
  EXPECT_EQ(read_prepared_index(path).fingerprint(), print);
  EXPECT_SAYS(line, "prepared before");

  std::string bytes = read_text(path + "/train_00000.tokens");
  bytes[270] = static_cast<char>(bytes[270] ^ 4);
  write_text(path + "/train_00000.tokens", bytes);
  prepare_auto_corpus(folder / "run", options, silent);
  const std::string anew = read_prepared_index(path).fingerprint();
  EXPECT_NE(anew, print);
  options.val_fraction = 0.5;
  prepare_auto_corpus(folder / "run", options, silent);
  EXPECT_NE(read_prepared_index(path).fingerprint(), anew);
}

TEST(AutoCorpus, NoHeadersSaysWhatToDo) {
  const TemporaryFolder folder;
  write_text(folder / "include/a.txt", "x");
  AutoCorpusOptions options;
  options.roots = {folder / "include", folder / "absent"};
  EXPECT_SAYS(ERROR_TEXT(ErrorKind::input, prepare_auto_corpus(folder / "run", options, silent)), "--data.path data/mine");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

}  // namespace
}  // namespace nsp
