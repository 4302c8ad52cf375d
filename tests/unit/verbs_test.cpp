// The verbs: which there are, what their help lists, and which keys each obeys.
#include <gtest/gtest.h>

#include <set>

#include "core/config/help.hpp"
#include "core/config/resolver.hpp"
#include "tests/unit/config_lines.hpp"

namespace nsp {
namespace {

TEST(Config, Verbs) {
  EXPECT_EQ(line_of({}).verb(), "train");
  EXPECT_FALSE(line_of({}).verb_named());
  EXPECT_TRUE(line_of({"train"}).verb_named());
  EXPECT_EQ(line_of({"--train.lr", "1"}).verb(), "train");
  const Config generate = line_of({"generate", "--prompt", "int main", "--top-k=5"}).resolve({}, {});
  EXPECT_EQ(generate.section("generate").text("prompt"), "int main");
  EXPECT_EQ(generate.section("generate").integer("top-k"), 5);
  const Config prepare = line_of({"prepare", "--input", "a b", "--input", "c,d", "--output", "o"}).resolve({}, {});
  EXPECT_EQ(prepare.list("prepare", "input"), (std::vector<std::string>{"a b", "c,d"}));
  EXPECT_TRUE(line_of({"prepare"}).resolve({}, {}).list("prepare", "input").empty());
  EXPECT_EQ(line_of({"checkpoint", "ls", "runs/a", "--run.dir", "x"}).operands(), (std::vector<std::string>{"ls", "runs/a"}));
  EXPECT_EQ(line_of({"checkpoint", "verify"}).operands(), std::vector<std::string>{"verify"});
  EXPECT_TRUE(has(refusal({"checkpoint"}), "nsp_app checkpoint ls RUN"));
  EXPECT_TRUE(has(refusal({"checkpoint", "list"}), "'list' is neither ls nor verify"));
  EXPECT_TRUE(has(refusal({"bench"}), "Nothing follows it. Write nsp_app bench ops."));
  EXPECT_TRUE(has(refusal({"bench", "op"}), "'op' is not ops"));
  EXPECT_TRUE(has(refusal({"trian"}), "Did you mean train?"));
  EXPECT_TRUE(has(refusal({"plan", "extra"}), "'extra' stands alone"));
}

TEST(Config, HelpAndVersion) {
  EXPECT_TRUE(line_of({"--help"}).help());
  EXPECT_TRUE(line_of({"plan", "-h"}).help());
  EXPECT_TRUE(line_of({"checkpoint", "--help"}).help());
  EXPECT_TRUE(line_of({"bench", "--help"}).help());
  EXPECT_TRUE(line_of({"--version"}).version());
  EXPECT_TRUE(line_of({"--help", "--desloc.kx", "3"}).help());
  EXPECT_FALSE(line_of({}).help());
  EXPECT_TRUE(has(help_text("generate", true, desloc_rows()), "--prompt"));
  const std::string text = help_text("train", true, desloc_rows());
  for (const OptionRow& row : core_rows()) EXPECT_TRUE(has(text, "--" + row.key())) << row.key();
  EXPECT_TRUE(has(text, "plug-in desloc"));
  EXPECT_TRUE(has(text, "--desloc.kx period"));
  EXPECT_TRUE(has(text, "[32]"));
  EXPECT_TRUE(has(help_text("train", false, {}), "checkpoint ls|verify [RUN]"));
}

// What a verb obeys, its help lists and its configuration holds; files and environment may give other keys, which are judged.
TEST(Config, AVerbHasTheKeysThatItObeys) {
  std::vector<OptionRow> rows = core_rows();
  for (const OptionRow& row : desloc_rows()) rows.push_back(row);
  for (const Verb& verb : verbs()) {
    SCOPED_TRACE(verb.name);
    for (const std::string& key : verb.keys) {  // none is a word of the table alone
      const auto names = [&](const OptionRow& row) { return key == "*" || key == row.key() || key == row.section + ".*"; };
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), names)) << key;
    }
    const std::string text = help_text(verb.name, true, desloc_rows());
    std::vector<std::string> words = {verb.name};
    if (verb.name == "checkpoint") words.emplace_back("ls");
    if (verb.name == "bench") words.emplace_back("ops");
    const Config config = line_of(words, {{"NSP_TRAIN_LR", "1"}, {"NSP_DESLOC_KX", "3"}}).resolve(desloc_rows(), {});
    std::set<std::string> held;
    for (const OptionRow& row : config.rows()) held.insert(row.key());
    for (const OptionRow& row : rows) {
      EXPECT_EQ(has(text, "\n  --" + row.key() + (row.key() == "help" ? "," : " ")), verb.obeys(row)) << row.key();
      EXPECT_EQ(held.count(row.key()) > 0, verb.obeys(row)) << row.key();
    }
    EXPECT_THROW(line_of(words, {{"NSP_TRAIN_LR", "high"}}).resolve(desloc_rows(), {}), Error);
    for (const OptionRow& row : rows) {
      if (row.type == "switch" || row.key() == "config") continue;
      const bool of_planned_job = verb.name == "plan" && !row.of_verb;
      const bool allowed = verb.obeys(row) || of_planned_job || row.key() == "plugins" || row.key() == "plugin-path";
      std::vector<std::string> given = words;
      for (const std::string& word : {"--" + row.key(), row.default_value}) given.push_back(word);
      if (row.default_value.empty()) given.back() = row.type == "string" ? "a" : "1";
      const std::string said = refusal(given);
      EXPECT_EQ(has(said, "--" + row.key() + " has no effect on the verb " + verb.name), !allowed) << said;
      EXPECT_EQ(said.empty(), allowed) << said;
    }
  }
  EXPECT_TRUE(has(help_text("generate", true, {}), "--train.context"));
  EXPECT_FALSE(has(help_text("generate", true, desloc_rows()), "--train.lr"));
  EXPECT_FALSE(has(help_text("prepare", true, desloc_rows()), "--model."));
  EXPECT_TRUE(has(help_text("plan", true, desloc_rows()), "--desloc.kx"));
}

}  // namespace
}  // namespace nsp
