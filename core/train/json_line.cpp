#include "core/train/json_line.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace nsp {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

void JsonLine::key(const std::string& name) {
  if (!body_.empty()) body_ += ",";
  body_ += quoted(name) + ":";
}

JsonLine& JsonLine::add(const std::string& name, double value) {
  key(name);
  if (!std::isfinite(value)) {
    body_ += "null";
    return *this;
  }
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  body_.append(text, end);
  return *this;
}

JsonLine& JsonLine::add(const std::string& name, int64_t value) {
  key(name);
  body_ += std::to_string(value);
  return *this;
}

JsonLine& JsonLine::add(const std::string& name, bool value) {
  key(name);
  body_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::add(const std::string& name, const std::string& value) {
  key(name);
  body_ += quoted(value);
  return *this;
}

JsonLine& JsonLine::add(const std::string& name, const std::vector<std::string>& values) {
  key(name);
  std::string list;
  for (const std::string& value : values) list.append(list.empty() ? "" : ",").append(quoted(value));
  body_ += "[" + list + "]";
  return *this;
}

JsonLine& JsonLine::add(const std::string& name, const std::vector<JsonLine>& objects) {
  key(name);
  std::string list;
  for (const JsonLine& object : objects) list.append(list.empty() ? "" : ",").append(object.text());
  body_ += "[" + list + "]";
  return *this;
}

}  // namespace nsp
