#include "core/config/ini_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr const char* kSpace = " \t\r\v\f";

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(kSpace);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

[[noreturn]] void reject(const std::string& path, int line, const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::usage, path + " line " + std::to_string(line) + ": " + what + ". " + remedy + ".");
}

std::string comment_of(const std::string& rest) {
  const std::size_t from = rest.find_first_not_of("#;");
  return from == std::string::npos ? "" : trimmed(rest.substr(from));
}

// What stands behind '=': a quoted or a plain value, then perhaps a comment.
void parse_value(const std::string& rest, const std::string& path, IniEntry* entry) {
  if (rest.empty() || rest[0] != '"') {
    std::size_t hash = rest.find('#');
    while (hash != std::string::npos && hash > 0 && std::strchr(kSpace, rest[hash - 1]) == nullptr) hash = rest.find('#', hash + 1);
    entry->text = trimmed(rest.substr(0, hash));
    if (hash != std::string::npos) entry->comment = comment_of(rest.substr(hash));
    return;
  }
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      const std::string tail = trimmed(rest.substr(i + 1));
      if (!tail.empty() && tail[0] != '#') {
        reject(path, entry->line, "there is text behind the closing quote", "Put the whole value between the quotes");
      }
      entry->comment = comment_of(tail);
      return;
    }
    if (rest[i] != '\\') {
      entry->text += rest[i];
      continue;
    }
    if (++i == rest.size()) break;
    if (rest[i] != '"' && rest[i] != '\\' && rest[i] != 'n') {
      reject(path, entry->line, std::string("\\") + rest[i] + " is not an escape", "Use \\\", \\\\ or \\n");
    }
    entry->text += rest[i] == 'n' ? '\n' : rest[i];
  }
  reject(path, entry->line, "the quoted value has no closing quote", "Add the quote");
}

}  // namespace

std::vector<IniEntry> parse_ini(const std::string& content, const std::string& path) {
  std::vector<IniEntry> entries;
  std::istringstream stream(content.compare(0, 3, "\xEF\xBB\xBF") == 0 ? content.substr(3) : content);
  std::string raw, section;
  for (int number = 1; std::getline(stream, raw); ++number) {
    const std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const std::size_t close = line.find(']');
      if (close == std::string::npos) reject(path, number, "'" + line + "' is not a section line", "Write it like [train]");
      const std::string tail = trimmed(line.substr(close + 1));
      if (!tail.empty() && tail[0] != '#' && tail[0] != ';') {
        reject(path, number, "there is text behind the section name", "Put the key on a line of its own");
      }
      section = trimmed(line.substr(1, close - 1));
      if (section.empty()) reject(path, number, "the section has no name", "Write it like [train]");
      continue;
    }
    const std::size_t equal = line.find('=');
    IniEntry entry;
    entry.line = number;
    const std::string name = equal == std::string::npos ? "" : trimmed(line.substr(0, equal));
    if (name.empty()) reject(path, number, "'" + line + "' is neither a section nor key = value", "Write it like lr = 3e-4");
    entry.key = section.empty() ? name : section + "." + name;
    parse_value(trimmed(line.substr(equal + 1)), path, &entry);
    entries.push_back(entry);
  }
  return entries;
}

std::vector<IniEntry> read_ini(const std::string& path) {
  std::error_code no_matter;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, no_matter)) {
    const std::string reason = file ? "It is a folder" : std::strerror(errno);
    throw Error(ErrorKind::usage,
                "The configuration file '" + path + "' cannot be read. " + reason + ". Correct the name behind --config.");
  }
  std::ostringstream content;
  content << file.rdbuf();
  return parse_ini(content.str(), path);
}

std::string ini_value(const std::string& text) {
  const bool plain = trimmed(text) == text && text.find_first_of("#\"\\\n") == std::string::npos;
  if (plain) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace nsp
