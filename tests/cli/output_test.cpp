// Text that nsp_app cannot write is no success.
#include <gtest/gtest.h>

#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

TEST(Output, ThatCannotBeWrittenEndsEveryVerbWith1) {
  const TempFolder folder;
  const std::string run_dir = copy_of_run(folder);
  write_file(folder / "text.txt", "some words\n");
  for (const std::string& verb :
       {std::string("plan"), std::string("plugins"), std::string("info"), std::string("--version"), std::string("--help"),
        std::string("train --help"), "checkpoint ls " + run_dir, "checkpoint verify " + run_dir, "eval --run.dir " + run_dir,
        "eval --json --run.dir " + run_dir, "generate --tokens 3 --prompt ab --run.dir " + run_dir,
        "prepare --input " + (folder / "text.txt") + " --output " + (folder / "out")}) {
    SCOPED_TRACE(verb);
    expect_refusal(run("$NSP " + verb + " >/dev/full"), 1, {"cannot write standard output: "}, "write to another place");
  }
}

TEST(Output, WhoseReaderWentAwayEndsQuietly) {
  for (const char* ignore : {"", "trap '' PIPE; "}) {  // ended by the signal, or, where a parent ignores it, with 1
    const Said said = run(std::string("bash -c \"") + ignore + "{ sleep 0.2; $NSP plugins; echo code \\$? >&2; } | true\"");
    EXPECT_TRUE(said.contains(*ignore ? "code 1\n" : "code 141\n")) << said.out;
    EXPECT_FALSE(said.contains("error")) << said.out;
  }
}

TEST(Output, OfTrainingIsTheRunDirectory) {
  const TempFolder folder;
  const std::string train = "$NSP " + tiny({{"data.path", prepared_data()}, {"run.dir", folder / "run"}});
  EXPECT_EQ(run(train + " >/dev/full").code, 0);
  const Said again = run(train);
  EXPECT_TRUE(again.contains("is complete")) << again.out;
}

}  // namespace
}  // namespace nsp::test
