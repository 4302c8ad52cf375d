// Typed reading of one section's resolved options.
//
// Core resolves every value before a plug-in is created (defaults < preset < checkpoint < files < environment < command
// line) and has checked that it parses as its declared type. A plug-in reads its own section through this class.
// Reading a name that the plug-in did not declare is Error(internal). Thread: any, the object is immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace nsp {

// A period of `never` is written "inf" and read as 0.
inline constexpr int64_t never = 0;

class Options {
 public:
  struct Value {
    std::string text;  // as written: "32", "2h", "inf"
    // "default", "preset nano", "family llama", "checkpoint" or "checkpoint, given", "file x.ini line 3", "environment NSP_TRAIN_LR",
    // "command line"
    std::string origin;
    std::string type;  // of the option row
  };
  Options() = default;
  Options(std::string section, std::map<std::string, Value> values) : section_(std::move(section)), values_(std::move(values)) {}

  int64_t integer(const std::string& name) const;   // types int and size
  double number(const std::string& name) const;     // float
  bool flag(const std::string& name) const;         // bool
  std::string text(const std::string& name) const;  // string and choice; any other type as written ("auto" of auto|int)
  double seconds(const std::string& name) const;    // time
  int64_t period(const std::string& name) const;    // period; `never` for inf
  bool given(const std::string& name)
      const;  // by the user: a file, the environment, the command line or the checkpoint of a run where it was given

  const std::string& section() const noexcept { return section_; }
  const std::map<std::string, Value>& values() const noexcept { return values_; }

 private:
  const Value& at(const std::string& name) const;
  std::string section_;
  std::map<std::string, Value> values_;
};

// Parsing of one value, shared by the resolver and Options. Throws Error(usage) that names the type and an example.
namespace parse {
int64_t integer(const std::string& text);  // "32"
int64_t size(const std::string& text);     // "32", "4k" (1000), "2M", "1G"; "80G"
double number(const std::string& text);
bool flag(const std::string& text);       // true/false, yes/no, on/off, 1/0
double seconds(const std::string& text);  // "600", "600s", "10m", "2h"
int64_t period(const std::string& text);  // >= 1, or "inf"
// Throws Error(usage) unless text parses as `type` of nsp_option.
void check(const std::string& type, const std::string& text);
}  // namespace parse

}  // namespace nsp
