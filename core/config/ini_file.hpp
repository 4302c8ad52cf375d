// INI files: `key = value` lines under `[section]` lines.
//
// A reader of our own, because Boost's cuts every value at '#' and knows no line numbers for error texts.
#pragma once

#include <string>
#include <vector>

namespace nsp {

struct IniEntry {
  std::string key;      // "train.lr"; before the first section line just the name: "plugins"
  std::string text;     // the value, unquoted
  std::string comment;  // what stood behind " # " on the same line
  int line = 0;         // from 1
};

// Lines: empty, `# comment`, `; comment`, `[section]`, `key = value`. Spaces around parts do not count. A value ends at
// " #"; one that contains '#' or outer spaces stands in double quotes, where \" \\ \n are escapes.
// Throws Error(usage) that names `path` and the line.
std::vector<IniEntry> parse_ini(const std::string& content, const std::string& path);

// The same from a file; Error(usage) if it cannot be read.
std::vector<IniEntry> read_ini(const std::string& path);

// `text` as it must stand behind "key = " to be read back unchanged.
std::string ini_value(const std::string& text);

}  // namespace nsp
