// One JSON object on one line, written key by key. Numbers that JSON lacks (NaN, infinities) become null.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nsp {

class JsonLine {
 public:
  JsonLine& add(const std::string& key, double value);  // shortest text that reads back as the same double
  JsonLine& add(const std::string& key, int64_t value);
  JsonLine& add(const std::string& key, bool value);
  JsonLine& add(const std::string& key, const std::string& value);
  JsonLine& add(const std::string& key, const std::vector<std::string>& values);
  JsonLine& add(const std::string& key, const std::vector<JsonLine>& objects);
  std::string text() const { return "{" + body_ + "}"; }

 private:
  void key(const std::string& name);
  std::string body_;
};

}  // namespace nsp
