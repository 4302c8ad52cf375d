#include "core/data/json_text.hpp"

#include <gtest/gtest.h>

namespace nsp {
namespace {

std::string error_of(const std::string& line) {
  try {
    json_text(line, "text");
  } catch (const JsonTextError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonText, TakesTheMember) {
  EXPECT_EQ(json_text(R"({"text":"a b"})", "text"), "a b");
  EXPECT_EQ(json_text(" { \"id\" : -1.5e+3 , \"text\" : \"\" , \"ok\" : true }\r", "text"), "");
  EXPECT_EQ(json_text(R"({"meta":{"text":"no","list":[1,{"text":"\"}"},null,[]]},"text":"yes","z":[]})", "text"), "yes");
  EXPECT_EQ(json_text(R"({"content":"c"})", "content"), "c");
}

TEST(JsonText, Escapes) {
  EXPECT_EQ(json_text(R"({"text":"\"\\\/\b\f\n\r\t"})", "text"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(json_text(R"({"text":"\u0041\u00e9\u20AC\ud83D\uDE00"})", "text"), "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(json_text(R"({"te\u0078t":"x"})", "text"), "x");
  EXPECT_EQ(json_text(R"({"text":"\u0000"})", "text"), std::string(1, '\0'));
}

TEST(JsonText, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("hello"), "'{' is missing at column 1");
  EXPECT_EQ(error_of(R"({"a":1})"), "no member 'text' at column 8");
  EXPECT_EQ(error_of(R"({"text":1})"), "'text' is not a string at column 9");
  EXPECT_EQ(error_of(R"({"text":"abc)"), "a string is cut off at column 13");
  EXPECT_EQ(error_of(R"({"text":"a"} x)"), "something follows the object at column 14");
  EXPECT_EQ(error_of(R"({"text":"\ud800"})"), "half of a surrogate pair at column 16");
  EXPECT_EQ(error_of(R"({"text":"\q"})"), "an unknown escape at column 12");
  EXPECT_NE(error_of(R"({"a":,"text":"b"})"), "");
  EXPECT_NE(error_of(R"({"text" "b"})"), "");
  EXPECT_NE(error_of(R"({"a":[1,2)"), "");
  EXPECT_NE(error_of(""), "");
}

// No prefix of a line is taken for a whole one, and none makes the reader run away.
TEST(JsonText, EveryCutIsAnError) {
  const std::string line = R"({"meta":{"list":[1,{"b":"\u00e9"}]},"text":"yes \ud83d\ude00"})";
  EXPECT_EQ(json_text(line, "text").size(), 8u);
  for (std::size_t left = 0; left < line.size(); ++left) EXPECT_NE(error_of(line.substr(0, left)), "") << left;
}

std::string nested(std::size_t depth) {
  return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + ",\"text\":\"b\"}";
}

TEST(JsonText, NestingIsLimited) {
  EXPECT_EQ(json_text(nested(1000), "text"), "b");
  EXPECT_EQ(error_of(nested(1001)), "nested deeper than 1000 at column 1006");
  EXPECT_NE(error_of(nested(1000000)), "");
}

TEST(JsonText, MembersThatArePassedOverAreJson) {
  for (const char* value : {"{}", "[]", " [ ] ", "{ \"\" : [ { } ] }", "[[],{},\"]\",-0]", "0", "-10.25e-07", "1E9", "true", "false",
                            "null", R"("\ud83d\ude00\n")", R"({"b":{"c":[1,2,{"d":null}],"e":"}"},"f":[[]]})"}) {
    EXPECT_EQ(json_text(std::string("{\"a\":") + value + ",\"text\":\"b\"}", "text"), "b") << value;
    EXPECT_EQ(json_text(std::string("{\"text\":\"b\",\"a\":") + value + "}", "text"), "b") << value;
  }
  for (const char* value : {"[}",          "{]",        "{,}",       "[,]",     "[1,]",
                            "[1 2]",       "[1:2]",     "[1,,2]",    "{\"b\"}", "{\"b\":}",
                            "{\"b\":1,}",  "{\"b\" 1}", "{\"b\",1}", "{1:2}",   "{\"b\":1 \"c\":2}",
                            "[[]",         "[]]",       "{}}",       "tru",     "truex",
                            "True",        "nul",       "NaN",       "01",      "-",
                            "+1",          ".5",        "1.",        "1e",      "1e+",
                            "0x1",         "1a",        "--1",       "1 2",     "\"\\q\"",
                            "\"\\ud800\"", ":",         ",",         "]"})
    EXPECT_NE(error_of(std::string("{\"a\":") + value + ",\"text\":\"b\"}"), "") << value;
  EXPECT_EQ(error_of(R"({"a":[},"text":"y"})"), "a value is missing at column 7");
  EXPECT_EQ(error_of(R"({"a":[1 2],"text":"y"})"), "']' is missing at column 9");
}

}  // namespace
}  // namespace nsp
