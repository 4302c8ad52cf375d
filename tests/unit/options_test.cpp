// Reading of single values: every type, its border cases, and the texts of refusals.
#include "nsp/options.hpp"

#include <gtest/gtest.h>

#include "nsp/error.hpp"

namespace nsp {
namespace {

std::string refusal(const std::string& type, const std::string& text) {
  try {
    parse::check(type, text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "";
}

TEST(Parse, WholeNumbers) {
  EXPECT_EQ(parse::integer("32"), 32);
  EXPECT_EQ(parse::integer("-7"), -7);
  EXPECT_EQ(parse::integer("9223372036854775807"), 9223372036854775807LL);
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x10", "1k", "9223372036854775808", "+3", "one"}) {
    EXPECT_NE(refusal("int", bad), "") << bad;
  }
}

TEST(Parse, Sizes) {
  EXPECT_EQ(parse::size("32"), 32);
  EXPECT_EQ(parse::size("4k"), 4000);
  EXPECT_EQ(parse::size("2M"), 2000000);
  EXPECT_EQ(parse::size("80G"), 80000000000LL);
  EXPECT_EQ(parse::size("1.5M"), 1500000);
  for (const char* bad : {"", "k", "-1", "1.5", "1T", "10000000000G", "1kk"}) EXPECT_NE(refusal("size", bad), "") << bad;
}

TEST(Parse, Numbers) {
  EXPECT_EQ(parse::number("3e-4"), 3e-4);
  EXPECT_EQ(parse::number("-.5"), -0.5);
  for (const char* bad : {"", "nan", "inf", "1e999", "0,1", "1f"}) EXPECT_NE(refusal("float", bad), "") << bad;
}

TEST(Parse, Flags) {
  for (const char* yes : {"true", "yes", "on", "1"}) EXPECT_TRUE(parse::flag(yes));
  for (const char* no : {"false", "no", "off", "0"}) EXPECT_FALSE(parse::flag(no));
  for (const char* bad : {"", "True", "2"}) EXPECT_NE(refusal("bool", bad), "") << bad;
}

TEST(Parse, Times) {
  EXPECT_EQ(parse::seconds("600"), 600);
  EXPECT_EQ(parse::seconds("600s"), 600);
  EXPECT_EQ(parse::seconds("10m"), 600);
  EXPECT_EQ(parse::seconds("1.5h"), 5400);
  for (const char* bad : {"", "s", "-1s", "1d", "inf"}) EXPECT_NE(refusal("time", bad), "") << bad;
}

TEST(Parse, Periods) {
  EXPECT_EQ(parse::period("32"), 32);
  EXPECT_EQ(parse::period("inf"), never);
  for (const char* bad : {"", "0", "-1", "never", "1.5"}) EXPECT_NE(refusal("period", bad), "") << bad;
}

TEST(Parse, ChoicesNameTheNearest) {
  EXPECT_EQ(refusal("choice:constant|cosine|linear", "linear"), "");
  EXPECT_EQ(refusal("choice:constant|cosine|linear", "cosin"),
            "'cosin' is none of the allowed words: constant, cosine, linear. Did you mean cosine?");
  EXPECT_EQ(refusal("choice:a|b", ""), "'' is none of the allowed words: a, b. Write it like a.");
}

TEST(Parse, AutoIsAllowedWhereDeclared) {
  EXPECT_EQ(refusal("auto|int", "auto"), "");
  EXPECT_EQ(refusal("auto|int", "4"), "");
  EXPECT_EQ(refusal("auto|int", "x"), "'x' is not a whole number. Write it like 32. The word auto is allowed too.");
  EXPECT_NE(refusal("int", "auto"), "");
}

TEST(Parse, UnknownTypeIsRefused) {
  EXPECT_NE(refusal("integer", "1"), "");
  EXPECT_NE(refusal("auto|integer", "1"), "");
}

TEST(Options, TypedReading) {
  const Options options("desloc", {{"kx", {"32", "command line", "period"}},
                                   {"kv", {"inf", "default", "period"}},
                                   {"n", {"5", "file a.ini line 2", "auto|int"}},
                                   {"bytes", {"4k", "preset nano", "size"}},
                                   {"lr", {"0.5", "environment NSP_DESLOC_LR", "float"}},
                                   {"on", {"yes", "checkpoint", "bool"}},
                                   {"wait", {"2m", "checkpoint, given", "time"}},
                                   {"word", {"pre", "default", "choice:pre|post"}}});
  EXPECT_EQ(options.period("kx"), 32);
  EXPECT_EQ(options.period("kv"), never);
  EXPECT_EQ(options.integer("n"), 5);
  EXPECT_EQ(options.integer("bytes"), 4000);
  EXPECT_EQ(options.number("lr"), 0.5);
  EXPECT_TRUE(options.flag("on"));
  EXPECT_EQ(options.seconds("wait"), 120);
  EXPECT_EQ(options.text("word"), "pre");
  for (const char* name : {"kx", "n", "lr", "wait"}) EXPECT_TRUE(options.given(name)) << name;
  for (const char* name : {"kv", "bytes", "on", "word"}) EXPECT_FALSE(options.given(name)) << name;
}

TEST(Options, WrongReadingIsABug) {
  const Options options("a", {{"n", {"5", "default", "int"}}});
  for (const auto& read : {+[](const Options& o) { o.integer("m"); }, +[](const Options& o) { o.number("n"); },
                           +[](const Options& o) { o.period("n"); }, +[](const Options& o) { o.given("m"); }}) {
    try {
      read(options);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::internal);
    }
  }
}

}  // namespace
}  // namespace nsp
