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

TEST(JsonText, DeepNestingNeedsNoStack) {
  const std::string deep = "{\"a\":" + std::string(1000000, '[') + std::string(1000000, ']') + ",\"text\":\"b\"}";
  EXPECT_EQ(json_text(deep, "text"), "b");
}

}  // namespace
}  // namespace nsp
