#include "core/data/json_text.hpp"

#include <bitset>
#include <cctype>
#include <cstdint>

#include "core/data/utf8.hpp"

namespace nsp {
namespace {

constexpr std::size_t most_nesting = 1000;  // of arrays and objects in a member that is passed over

class Reader {
 public:
  explicit Reader(std::string_view line) : line_(line) {}

  std::string member(std::string_view key) {
    bool found = false;
    std::string value;
    expect('{');
    if (!accept('}')) {
      do {
        const std::string name = string();
        expect(':');
        if (name == key) {
          if (peek() != '"') fail("'" + std::string(key) + "' is not a string");
          value = string();
          found = true;
        } else {
          skip_value();
        }
      } while (accept(','));
      expect('}');
    }
    if (peek() != '\0' || at_ < line_.size()) fail("something follows the object");
    if (!found) fail("no member '" + std::string(key) + "'");
    return value;
  }

 private:
  char peek() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r' || line_[at_] == '\n')) ++at_;
    return at_ < line_.size() ? line_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= line_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "' is missing");
  }
  [[noreturn]] void fail(const std::string& what) const { throw JsonTextError(what + " at column " + std::to_string(at_ + 1)); }

  std::string string() {
    std::string text;
    string(&text);
    return text;
  }

  // Without a text to append to, it is checked and passed over.
  void string(std::string* text) {
    expect('"');
    for (;;) {
      const std::size_t begin = at_;
      while (at_ < line_.size() && line_[at_] != '"' && line_[at_] != '\\' && static_cast<unsigned char>(line_[at_]) >= 0x20) ++at_;
      if (text != nullptr) text->append(line_, begin, at_ - begin);
      if (at_ >= line_.size()) fail("a string is cut off");
      const char c = line_[at_++];
      if (c == '"') return;
      if (c != '\\') fail("a control character in a string");
      const uint32_t code = escape();
      if (text != nullptr) append_utf8(code, *text);
    }
  }

  uint32_t escape() {
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (at_ >= line_.size()) fail("a string is cut off");
    const char c = line_[at_++];
    if (const std::size_t i = names.find(c); i != names.npos) return static_cast<unsigned char>(values[i]);
    if (c != 'u') fail("an unknown escape");
    const uint32_t code = hex4();
    if (code < 0xD800 || code >= 0xE000) return code;
    if (code >= 0xDC00 || line_.substr(at_, 2) != "\\u") fail("half of a surrogate pair");
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }

  uint32_t hex4() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= line_.size() || !std::isxdigit(static_cast<unsigned char>(line_[at_]))) fail("a bad \\u escape");
      const int c = std::tolower(static_cast<unsigned char>(line_[at_]));
      code = code * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return code;
  }

  static void append_utf8(uint32_t code, std::string& text) {
    if (code < 0x80) return text.push_back(static_cast<char>(code));
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    text.push_back(static_cast<char>(lead[more] | code >> 6 * more));
    for (int i = more - 1; i >= 0; --i) text.push_back(static_cast<char>(0x80 | (code >> 6 * i & 0x3F)));
  }

  // Not recursive, so that deep nesting cannot exhaust the stack.
  void skip_value() {
    std::bitset<most_nesting> objects;  // which of the open brackets are braces
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (c == '{' || c == '[') {
        if (depth == most_nesting) fail("nested deeper than " + std::to_string(most_nesting));
        objects[depth++] = c == '{';
        ++at_;
        if (peek() != (c == '{' ? '}' : ']')) {
          if (c == '{') skip_name();
          continue;
        }
      } else if (c == '"') {
        string(nullptr);
      } else {
        skip_scalar();
      }
      while (depth > 0 && !accept(',')) expect(objects[--depth] ? '}' : ']');
      if (depth > 0 && objects[depth - 1]) skip_name();
    } while (depth > 0);
  }

  void skip_name() {
    string(nullptr);
    expect(':');
  }

  void skip_scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (line_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return;
    }
    const auto next = [&](std::string_view any) {
      const bool is = at_ < line_.size() && any.find(line_[at_]) != any.npos;
      at_ += is ? 1 : 0;
      return is;
    };
    const auto digits = [&] {
      if (at_ >= line_.size() || line_[at_] < '0' || line_[at_] > '9') fail("a value is missing");
      while (at_ < line_.size() && line_[at_] >= '0' && line_[at_] <= '9') ++at_;
    };
    next("-");
    if (!next("0")) digits();
    if (next(".")) digits();
    if (next("eE")) {
      next("+-");
      digits();
    }
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace

std::string json_text(std::string_view line, std::string_view key) {
  if (const std::size_t bad = first_bad_utf8(line); bad != line.npos)
    throw JsonTextError("bytes that are not UTF-8 at column " + std::to_string(bad + 1));
  return Reader(line).member(key);
}

}  // namespace nsp
