// The resolution of the configuration: sources and their order, strictness, texts, dump and hash, help.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "core/config/command_line.hpp"
#include "core/config/core_options.hpp"
#include "core/config/help.hpp"
#include "core/config/presets.hpp"
#include "core/config/resolver.hpp"
#include "nsp/error.hpp"
#include "tests/unit/config_lines.hpp"

namespace nsp {
namespace {

// A file that lives as long as this object.
class File {
 public:
  explicit File(const std::string& content) {
    char name[] = "/tmp/nsp_config_XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~File() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Config, CoreRowsAreFrozen) {
  std::ostringstream now;
  const auto print = [&now](const char* indent, const OptionRow& row) {
    now << indent << row.key() << ": " << row.type << (row.default_value.empty() ? "" : " = ") << row.default_value << "\n";
  };
  for (const OptionRow& row : core_rows()) print("", row);
  for (const Verb& verb : verbs()) {
    now << "verb " << verb.name << (verb.operands.empty() ? "" : " ") << verb.operands << "\n";
    for (const OptionRow& row : verb_rows(verb.name)) print("  --", row);
  }
  const char* source = std::getenv("NSP_TEST_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  std::ifstream file(std::string(source) + "/tests/golden/cli_core.txt");
  ASSERT_TRUE(file) << "tests/golden/cli_core.txt is missing";
  std::ostringstream frozen;
  frozen << file.rdbuf();
  EXPECT_EQ(now.str(), frozen.str()) << "the command line is a promise to users: change the golden file only on purpose";
}

TEST(Config, EveryDefaultParsesAndEveryPresetSetsAllSizes) {
  for (const OptionRow& row : core_rows()) {
    if (row.default_value.empty()) continue;
    EXPECT_NO_THROW(check_value(row, row.default_value)) << row.key();
  }
  for (const Verb& verb : verbs()) {
    for (const OptionRow& row : verb_rows(verb.name)) {
      if (row.default_value.empty()) continue;
      EXPECT_NO_THROW(check_value(row, row.default_value)) << row.key();
    }
  }
  for (const std::string& preset : preset_names()) {
    const Config config = resolved({"--model.preset", preset});
    for (const char* size : {"layers", "hidden", "heads", "ffn", "vocab", "context"}) EXPECT_GT(config.section("model").integer(size), 0);
    EXPECT_EQ(config.section("model").values().at("layers").origin, "preset " + preset);
  }
}

TEST(Config, DefaultsAndPreset) {
  const Config config = resolved({});
  EXPECT_EQ(config.section("train").integer("steps"), 1500);
  EXPECT_EQ(config.section("train").number("lr"), 2e-3);
  EXPECT_EQ(config.section("").text("backend"), "auto");
  EXPECT_EQ(config.section("comm").seconds("timeout"), 600);
  EXPECT_TRUE(config.given_keys().empty());
  EXPECT_EQ(resolved({"--model.preset=gpt2_124m"}).section("train").integer("steps"), 1000);
}

// What is left to the family is said in full, so that config.ini and checkpoints do not depend on what `auto` means.
TEST(Config, AutoOfTheFamilyIsResolvedAndNotGiven) {
  const auto expect = [](const Config& config, const char* name, const char* text, const std::string& origin) {
    EXPECT_EQ(config.section("model").text(name), text) << name;
    EXPECT_EQ(config.section("model").values().at(name).origin, origin) << name;
  };
  expect(resolved({}), "tied", "true", "family gpt2");
  const Config llama = resolved({"--model.preset", "llama_15m"});
  expect(llama, "tied", "false", "family llama");
  expect(llama, "qkv_bias", "false", "family llama");
  EXPECT_FALSE(llama.section("model").given("tied"));
  expect(resolved({"--model.family", "llama"}), "tied", "false", "family llama");
  expect(resolved({"--model.family", "llama", "--model.tied", "true"}), "tied", "true", "command line");
  expect(resolved({"--model.family", "llama", "--model.tied", "auto"}), "tied", "false", "command line");
  const File dumped(llama.dump());  // reads back as what it was, and another family may still be given
  expect(resolved({"--config", dumped.path()}), "tied", "false", "family llama");
  expect(resolved({"--config", dumped.path(), "--model.family", "gpt2"}), "tied", "true", "family gpt2");
  const StoredValues stored{{"model.family", {"llama", "preset llama_15m"}}, {"model.tied", {"false", "family llama"}}};
  expect(resolved({}, {}, stored), "tied", "false", "checkpoint");
}

TEST(Config, EachSourceBeatsTheWeakerOnes) {
  const File one("[train]\nclip = 3\nlr = 3\nwarmup = 3\neval_every = 3\n"), two("[train]\nclip = 4\nlr = 4\nwarmup = 4\n");
  const StoredValues stored{{"train.clip", {"2", "default"}},
                            {"train.keep", {"2", "command line"}},
                            {"train.steps", {"7", "preset nano"}},
                            {"train.seed", {"9", "checkpoint, given"}}};
  const Config config = resolved({"--config", one.path(), "--config", two.path(), "--train.clip", "6"},
                                 {{"NSP_TRAIN_CLIP", "5"}, {"NSP_TRAIN_LR", "5"}}, stored);
  const Options& train = config.section("train");
  const auto expect = [&](const char* name, const char* text, const std::string& origin, bool given) {
    EXPECT_EQ(train.text(name), text) << name;
    EXPECT_EQ(train.values().at(name).origin, origin) << name;
    EXPECT_EQ(train.given(name), given) << name;
  };
  expect("clip", "6", "command line", true);
  expect("lr", "5", "environment NSP_TRAIN_LR", true);
  expect("warmup", "4", "file " + two.path() + " line 4", true);
  expect("eval_every", "3", "file " + one.path() + " line 5", true);
  expect("keep", "2", "checkpoint, given", true);
  expect("seed", "9", "checkpoint, given", true);
  expect("steps", "7", "checkpoint", false);
  expect("keep_every", "0", "default", false);
  EXPECT_EQ(config.given_keys(),
            (std::vector<std::string>{"train.lr", "train.warmup", "train.clip", "train.seed", "train.eval_every", "train.keep"}));
}

TEST(Config, AStoredRunKeepsItsPresetAndForgetsItsDirectory) {
  const StoredValues stored{{"model.preset", {"gpt2_124m", "command line"}},
                            {"run.dir", {"/elsewhere", "command line"}},
                            {"plugins", {"desloc", "command line"}},
                            {"gone.key", {"1", "command line"}},
                            {"model.layers", {"5", "file x line 1"}}};
  const CommandLine line = line_of({});
  EXPECT_EQ(line.plugins(stored), std::vector<std::string>{"desloc"});
  const Config config = line.resolve(desloc_rows(), stored);
  EXPECT_EQ(config.section("model").integer("hidden"), 768);
  EXPECT_EQ(config.section("model").integer("layers"), 5);
  EXPECT_EQ(config.section("run").text("dir"), "nsp-run");
}

TEST(Config, PluginOptionsAreReadInTheSecondPass) {
  const File file("plugins = desloc, autosp\n[desloc]\non = yes\n");
  const CommandLine line = line_of({"--config", file.path(), "--desloc.kx", "inf", "--run.dir=x"});
  EXPECT_EQ(line.plugins({}), (std::vector<std::string>{"desloc", "autosp"}));
  EXPECT_EQ(line.core("run", {}).text("dir"), "x");
  const Config config = line.resolve(desloc_rows(), {});
  EXPECT_EQ(config.section("desloc").period("kx"), never);
  EXPECT_TRUE(config.section("desloc").flag("on"));
}

TEST(Config, UnknownKeysNameTheNearest) {
  EXPECT_EQ(refusal({"--model.layer", "3"}),
            "--model.layer (command line) is not a known option. Neither nsp nor a plug-in in use has it. Did you mean --model.layers?");
  EXPECT_TRUE(has(refusal({"--train.step", "3"}), "Did you mean --train.steps?")) << "no prefix guessing";
  EXPECT_TRUE(has(refusal({"--lr", "3"}), "--train.lr"));
  EXPECT_TRUE(has(refusal({"--plugin", "desloc"}), "Did you mean --plugins?"));
  EXPECT_TRUE(has(refusal({"--sgd.momentum", "0"}), "There is no section sgd"));
  EXPECT_TRUE(has(refusal({"--sgd.momentum", "0"}), "add it to --plugins"));
  EXPECT_TRUE(has(refusal({"--prompt", "x"}), "It belongs to the verb generate"));
  EXPECT_TRUE(has(refusal({"-x"}), "-x (command line) is not a known option"));
  EXPECT_TRUE(has(refusal({"--model.recompute", "1"}), "not a known option"));
  const File file("[train]\n\nlearning = 3\n");
  EXPECT_TRUE(has(refusal({"--config", file.path()}), "train.learning (file " + file.path() + " line 3) is not a known option"));
}

TEST(Config, BadValuesNameKeyValueTypeAndOrigin) {
  EXPECT_EQ(refusal({"--train.steps", "ten"}),
            "train.steps = ten (command line) cannot be used. 'ten' is not a whole number. Write it like 32.");
  EXPECT_TRUE(has(refusal({}, {{"NSP_TRAIN_STEPS", "ten"}}), "(environment NSP_TRAIN_STEPS)"));
  EXPECT_TRUE(has(refusal({"--model.layers", "0"}), "too small. Write a value of at least 1."));
  EXPECT_TRUE(has(refusal({"--data.val_fraction", "1.5"}), "too large"));
  EXPECT_TRUE(has(refusal({"--train.lr", "-1"}), "train.lr = -1 (command line)"));
  EXPECT_TRUE(has(refusal({"--train.micro_batch", "0"}), "too small"));
  EXPECT_TRUE(has(refusal({"--desloc.kx", "0"}), "desloc.kx = 0"));
  EXPECT_TRUE(has(refusal({"--model.preset", "nanno"}), "Did you mean nano?"));
  EXPECT_TRUE(has(refusal({"--train.dtype", "fp16"}), "fp32"));
  EXPECT_TRUE(has(refusal({"--train.steps", "1", "--train.tokens", "5M"}), "are both given"));
}

TEST(Config, ForgottenValuesTwiceAndStrayWords) {
  EXPECT_NE(refusal({"--train.lr"}), "");
  EXPECT_NE(refusal({"--train.lr="}), "");
  EXPECT_TRUE(has(refusal({"--run.dir", "--train.lr", "1"}), "--run.dir")) << refusal({"--run.dir", "--train.lr", "1"});
  EXPECT_TRUE(has(refusal({"--run.dir", "--desloc.kx=3"}), "--run.dir has no value"));
  EXPECT_TRUE(has(refusal({"--train.lr", "1", "--train.lr=2"}), "--train.lr stands twice"));
  EXPECT_TRUE(has(refusal({"--desloc.kx", "1", "--desloc.kx=2"}), "--desloc.kx stands twice"));
  EXPECT_TRUE(has(refusal({"--train.lr", "1", "2"}), "'2' stands alone"));
  EXPECT_NE(refusal({"--data.shuffle"}), "") << "a bool has a value";
  EXPECT_NE(refusal({"--help=yes"}), "");
}

TEST(Config, Bools) {
  EXPECT_FALSE(resolved({"--data.shuffle", "false"}).section("data").flag("shuffle"));
  EXPECT_FALSE(resolved({"--data.shuffle=no"}).section("data").flag("shuffle"));
}

TEST(Config, LengthInStepsOrTokens) {
  EXPECT_EQ(resolved({"--train.tokens", "5M"}).section("train").integer("tokens"), 5000000);
  // On resume the newer of the two holds.
  const StoredValues steps{{"train.steps", {"7", "command line"}}};
  EXPECT_EQ(resolved({"--train.tokens", "5M"}, {}, steps).section("train").text("tokens"), "5M");
  const StoredValues tokens{{"train.tokens", {"5M", "command line"}}};
  EXPECT_EQ(resolved({"--train.steps", "8"}, {}, tokens).section("train").text("tokens"), "auto");
  EXPECT_EQ(resolved({}, {}, tokens).section("train").text("tokens"), "5M");
}

TEST(Config, EnvironmentVariablesThatAreNoOptionsGiveOneWarning) {
  const Environment environment{{"NSP_TRIAN_LR", "1"}, {"NSP_ROOT", "/opt"},   {"NSP_PLUGIN_PATH", "/x"},
                                {"NSP_TEST_X", "1"},   {"NSP_DESLOC_KX", "8"}, {"HOME", "/"}};
  const Config config = resolved({}, environment);
  ASSERT_EQ(config.warnings().size(), 1u);
  EXPECT_TRUE(has(config.warnings()[0], "NSP_ROOT, NSP_TRIAN_LR")) << config.warnings()[0];
  EXPECT_FALSE(has(config.warnings()[0], "NSP_TEST_X"));
  EXPECT_EQ(config.section("desloc").period("kx"), 8);
  EXPECT_TRUE(has(resolved({}, {{"NSP_TRIAN_LR", "1"}}).warnings()[0], "Did you mean NSP_TRAIN_LR?"));
  EXPECT_TRUE(resolved({}).warnings().empty());
}

TEST(Config, ConfigFilesFromTheEnvironmentComeBeforeThoseOfTheCommandLine) {
  const File one("[train]\nlr = 1\nclip = 1\n"), two("[train]\nlr = 2\n");
  const Config config = resolved({"--config", two.path()}, {{"NSP_CONFIG", one.path()}});
  EXPECT_EQ(config.section("train").number("lr"), 2);
  EXPECT_EQ(config.section("train").number("clip"), 1);
}

TEST(Config, FilesThatCannotBeUsed) {
  EXPECT_TRUE(has(refusal({"--config", "/nonexistent.ini"}), "'/nonexistent.ini' cannot be read. No such file"));
  EXPECT_TRUE(has(refusal({"--config", "/tmp"}), "'/tmp' cannot be read"));
  for (const char* bad : {"train.lr\n", "[train\nlr = 1\n", "[]\n", "= 3\n", "[train] lr = 1\n", "[data]\npath = \"x\n",
                          "[data]\npath = \"x\" y\n", "[data]\npath = \"\\q\"\n"}) {
    const File file(bad);
    EXPECT_TRUE(has(refusal({"--config", file.path()}), file.path() + " line ")) << bad;
  }
  const File nested("config = other.ini\n");
  EXPECT_TRUE(has(refusal({"--config", nested.path()}), "has no place in a file"));
}

TEST(Config, FilesMayHaveCommentsQuotesAndCarriageReturns) {
  const File file(
      "\xEF\xBB\xBF# comment\r\n; another\r\nmodel.layers = 3\r\n[ data ] # x\r\npath = /a#b c # why\r\nval_path = \" x # \\\"y\\\" "
      "\"\r\n");
  const Config config = resolved({"--config", file.path()});
  EXPECT_EQ(config.section("model").integer("layers"), 3);
  EXPECT_EQ(config.section("data").text("path"), "/a#b c");
  EXPECT_EQ(config.section("data").text("val_path"), " x # \"y\" ");
}

TEST(Config, DumpCanBeReadBack) {
  const Config config =
      resolved({"--data.path", " odd # \"path\"\\ ", "--desloc.kx", "inf", "--model.preset", "gpt2_124m"}, {{"NSP_TRAIN_LR", "1"}});
  const File dump(config.dump());
  const Config again = resolved({"--config", dump.path()});
  EXPECT_EQ(again.hash(), config.hash());
  EXPECT_EQ(again.section("data").text("path"), " odd # \"path\"\\ ");
  EXPECT_EQ(again.given_keys(), config.given_keys()) << "defaults stay defaults";
  EXPECT_TRUE(has(config.dump(), "[train]\nsteps = 1000  # default\n")) << config.dump();
  EXPECT_TRUE(has(config.dump(), "lr = 1  # environment NSP_TRAIN_LR\n"));
  EXPECT_FALSE(has(config.dump(), "help"));

  const StoredValues stored = read_stored(config.dump());
  const Config resumed = resolved({}, {}, stored);
  EXPECT_EQ(resumed.hash(), config.hash());
  EXPECT_EQ(resumed.given_keys(), config.given_keys());
  EXPECT_TRUE(resumed.changes(stored).empty());
  EXPECT_EQ(resolved({}, {}, read_stored(resumed.dump())).given_keys(), config.given_keys()) << "resumed twice";
}

TEST(Config, ADumpedLineThatWasEditedIsGiven) {
  const File edited("[train]\nlr = 7  # preset nano\nclip = 1.0  # default\n");
  EXPECT_EQ(resolved({"--config", edited.path()}).given_keys(), std::vector<std::string>{"train.lr"});
}

TEST(Config, HashSeesValuesAndNotWhereTheyCameFrom) {
  EXPECT_EQ(resolved({"--train.lr", "1"}).hash(), resolved({}, {{"NSP_TRAIN_LR", "1"}}).hash());
  EXPECT_NE(resolved({"--train.lr", "1"}).hash(), resolved({"--train.lr", "2"}).hash());
  EXPECT_NE(resolved({"--desloc.kx", "1"}).hash(), resolved({}).hash());
  EXPECT_EQ(resolved({"--backend", "cpu"}).hash(), resolved({}).hash()) << "ranks of one job may sit on different devices";
}

TEST(Config, ChangesAgainstAStoredRun) {
  const std::vector<Config::Change> changes =
      resolved({"--train.lr", "1"}, {}, {{"train.lr", {"2", "default"}}})
          .changes({{"train.lr", {"2", "default"}}, {"train.clip", {"1.0", "default"}}, {"gone.key", {"1", "default"}}});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].key + " " + changes[0].stored + " " + changes[0].now, "train.lr 2 1");
}

TEST(Config, CoreNamesAreReserved) {
  for (const char* name : {"model", "train", "comm", "plugins", "backend", "prepare", "generate"}) EXPECT_TRUE(is_core_name(name)) << name;
  for (const char* name : {"desloc", "adamw", "self", "mpi"}) EXPECT_FALSE(is_core_name(name)) << name;
}

}  // namespace
}  // namespace nsp
