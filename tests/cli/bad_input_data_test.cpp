// Text, token files and model files that cannot be used.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;
constexpr const char* lfs_pointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize "
    "497904640\n";

// Trains on this data, in a run directory of its own.
Said train_on(const std::string& data, Keys changed = {}) {
  const TempFolder runs;
  changed["data.path"] = data;
  changed["run.dir"] = runs / "run";
  return run("$NSP" + tiny(changed));
}

// Sizes come from the file, so none is given.
Said start_from(const std::string& file, const std::string& more = "") {
  const TempFolder runs;
  return run("$NSP --model.init " + file + " --data.path " + golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin") +
             " --train.threads 1 --train.steps 1 --run.dir " + (runs / "run") + more);
}

const std::string& llmc_tokens() {
  static const std::string path = golden("dev/data/tinyshakespeare/tiny_shakespeare_train.bin");
  return path;
}

TEST(Prepare, EmptyCorpus) {
  const TempFolder folder;
  fs::create_directory(folder / "text");
  expect_refusal(run("$NSP prepare --input " + (folder / "text") + " --output " + (folder / "out")), 4, {"text", "empty corpus"},
                 "Check the path");
  write_file(folder / "text/a.txt", "");
  expect_refusal(run("$NSP prepare --input " + (folder / "text") + " --output " + (folder / "out")), 4,
                 {"no text to prepare (empty corpus)", "1 empty file"}, "Give text files with --input");
  EXPECT_FALSE(fs::exists(folder / "out")) << "nothing half-written is left";
}

TEST(Prepare, InputThatIsMissing) {
  const TempFolder folder;
  expect_refusal(run("$NSP prepare --input " + (folder / "none") + " --output " + (folder / "out")), 4, {folder / "none", "does not exist"},
                 "Check the path");
  expect_refusal(run("$NSP prepare --output " + (folder / "out")), 2, {"prepare needs --input"}, "Name files, folders or globs");
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(Prepare, OutputThatIsMissingOrSomebodysOwn) {
  const TempFolder folder;
  fs::create_directory(folder / "mine");
  write_file(folder / "mine/a.txt", "my only copy");
  expect_refusal(run("$NSP prepare --input " + (folder / "mine")), 2, {"prepare needs --output"}, "--output data/mine");
  expect_refusal(run("$NSP prepare --input " + (folder / "mine") + " --output " + (folder / "mine")), 4,
                 {"is not a prepared folder", "could delete what is yours"}, "Choose another --output");
  expect_refusal(run("$NSP prepare --input " + (folder / "mine") + " --output /proc/tokens"), 4,
                 {"cannot create the output folder /proc/tokens"}, "Choose an --output that may be written");
  EXPECT_EQ(read_file(folder / "mine/a.txt"), "my only copy");
}

TEST(Prepare, UnknownTokenizer) {
  const TempFolder folder;
  write_file(folder / "a.txt", "text");
  expect_refusal(run("$NSP prepare --input " + (folder / "a.txt") + " --output " + (folder / "out") + " --tokenizer bpe"), 2,
                 {"tokenizer 'bpe' is not known"}, "--tokenizer bytes");
}

TEST(DataPath, MissingOrAFolderOfNoTokens) {
  const TempFolder folder;
  expect_refusal(train_on(folder / "none"), 4, {folder / "none", "does not exist"}, "Check the path");
  expect_refusal(train_on(folder.path()), 4, {folder.path() + " is not a prepared folder", "no prepare.ini"}, "nsp_app prepare --input");
}

TEST(DataPath, DamagedIndex) {
  const TempFolder folder;
  const std::string data = copy_of_data(folder), index = data + "/prepare.ini", text = read_file(index);
  write_file(index, "lost\n");
  expect_refusal(train_on(data), 4, {"prepare.ini does not begin as nsp writes it"}, "Run nsp_app prepare again");
  write_file(index, text.substr(0, text.size() / 2));
  expect_refusal(train_on(data), 4, {"prepare.ini is not a list of shards that nsp wrote", "changed or cut"}, "Run nsp_app prepare again");
}

TEST(DataPath, ShardThatIsMissing) {
  const TempFolder folder;
  const std::string data = copy_of_data(folder);
  fs::remove(data + "/train_00000.tokens");
  expect_refusal(train_on(data), 4, {"cannot open token file", "train_00000.tokens", "No such file"}, "Check data.path");
}

TEST(TokenFile, TruncatedShardOfNsp) {
  const TempFolder folder;
  const std::string data = copy_of_data(folder);
  cut(data + "/train_00000.tokens", 10);
  expect_refusal(train_on(data), 4, {"train_00000.tokens is truncated", "its header promises"},
                 "Copy it again or run nsp_app prepare again");
}

TEST(TokenFile, TruncatedShardOfLlmc) {
  const TempFolder folder;
  fs::copy(llmc_tokens(), folder / "cut.bin");
  cut(folder / "cut.bin", 100);
  expect_refusal(train_on(folder / "cut.bin", {{"model.vocab", "500"}}), 4,
                 {"cut.bin is truncated", "promises 41024 bytes, the file has 40924"}, "Copy it again");
}

TEST(TokenFile, DamagedHeader) {
  const TempFolder folder;
  const std::string data = copy_of_data(folder);
  flip(data + "/train_00000.tokens", 20);
  expect_refusal(train_on(data), 4, {"train_00000.tokens has a damaged header", "checksum"}, "Copy the file again");
}

TEST(TokenFile, FileOfSomethingElse) {
  const TempFolder folder;
  write_file(folder / "a.bin", std::string(5000, 'x'));
  expect_refusal(train_on(folder / "a.bin"), 4, {"a.bin is not a token file", "neither an nsp nor an llm.c"}, "nsp_app prepare --input");
  write_file(folder / "b.bin", "");
  expect_refusal(train_on(folder / "b.bin"), 4, {"b.bin is empty"}, "Copy it again");
  write_file(folder / "c.bin", lfs_pointer);
  expect_refusal(train_on(folder / "c.bin"), 4, {"c.bin is a Git LFS pointer"}, "git lfs pull");
}

TEST(TokenFile, TokenOutOfRange) {
  const TempFolder folder;
  std::string tokens = read_file(llmc_tokens());
  const uint16_t token = 60000;
  std::memcpy(&tokens[1024 + 2 * 70], &token, sizeof token);
  write_file(folder / "range.bin", tokens);
  const Said said = train_on(folder / "range.bin", {{"model.vocab", "500"}, {"data.shuffle", "false"}});
  expect_refusal(said, 4, {"token out of range", "range.bin has token 60000 at index 70 (byte 1164)", "vocabulary has 500"},
                 "Set model.vocab to that of the tokenizer, or copy the file again");
}

TEST(TokenFile, VocabularyOfTheModelTooSmall) {
  expect_refusal(train_on(prepared_data(), {{"model.vocab", "100"}}), 2, {"model.vocab is 100, the data needs 257"}, "Raise model.vocab");
}

TEST(TokenFile, TooShortForOneSequence) {
  const TempFolder folder;
  write_file(folder / "a.txt", std::string(300, 'a'));
  ASSERT_EQ(run("$NSP prepare --input " + (folder / "a.txt") + " --output " + (folder / "out")).code, 0);
  expect_refusal(train_on(folder / "out", {{"model.context", "1024"}}), 4, {"the training data is too short", "one window takes 1025"},
                 "lower train.context");
}

TEST(ModelFile, MissingOrNoModel) {
  const TempFolder folder;
  expect_refusal(start_from(folder / "none.bin"), 4, {"model.init = " + (folder / "none.bin"), "does not exist"}, "Correct the path");
  write_file(folder / "a.bin", std::string(5000, 'x'));
  expect_refusal(start_from(folder / "a.bin"), 4, {"cannot use the model file", "a.bin", "does not start with llm.c's model number"},
                 "Give a model file of llm.c");
  expect_refusal(start_from(folder.path()), 4, {"no usable checkpoint in " + folder.path()}, "Name a run directory that holds one");
}

TEST(ModelFile, GitLfsPointer) {
  const TempFolder folder;
  write_file(folder / "a.bin", lfs_pointer);
  expect_refusal(start_from(folder / "a.bin"), 4, {"a.bin", "Git LFS pointer, not the model"}, "git lfs pull");
}

TEST(ModelFile, Truncated) {
  const TempFolder folder;
  fs::copy(golden("gpt2_124M.bin"), folder / "a.bin");
  cut(folder / "a.bin", 1000);
  expect_refusal(start_from(folder / "a.bin"), 4, {"a.bin", "has 547864 bytes, and a model of its sizes has 548864"}, "copy it again");
}

TEST(ModelFile, SizeThatDisagrees) {
  const std::string file = golden("gpt2_124M.bin");
  expect_refusal(start_from(file, " --model.layers 9"), 2, {"model.layers = 9 disagrees with " + file, "which has 2"},
                 "Leave model.layers out");
  expect_refusal(start_from(file, " --model.family llama"), 2, {"model.family = llama disagrees with " + file, "which has gpt2"},
                 "Leave model.family out");
  expect_refusal(start_from(file, " --model.tied false"), 2, {"model.tied = false disagrees with " + file, "which has true"},
                 "Leave model.tied out");
  expect_refusal(start_from(file, " --model.preset nano"), 2, {"model.preset and model.init", "are both given"}, "Leave one of them out");
}

TEST(Eval, DataThatDoesNotFitTheRun) {
  const TempFolder folder;
  const std::string trained = copy_of_run(folder);
  expect_refusal(run("$NSP eval --run.dir " + trained + " --data.path " + (folder / "none")), 4, {folder / "none", "does not exist"},
                 "Check the path");
  expect_refusal(run("$NSP eval --run.dir " + trained + " --data.path " + llmc_tokens()), 2,
                 {"the data's tokenizer is llmc", "trained with bytes"}, "--data.val_path");
}

TEST(Generate, RunWhoseTokensHaveNoText) {
  const TempFolder folder;
  ASSERT_EQ(run("$NSP" + tiny_run(folder / "run", 1)).code, 0);
  expect_refusal(run("$NSP generate --run.dir " + (folder / "run") + " --prompt x"), 4, {"tokens of 'llmc'", "byte tokenizer only"},
                 "data nsp_app prepare made");
}

}  // namespace
}  // namespace nsp::test
