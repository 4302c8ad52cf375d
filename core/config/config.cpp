#include "core/config/config.hpp"

#include "core/config/ini_file.hpp"
#include "core/config/origin.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

// Whether a row belongs into files: options of a verb, switches and the list of files itself are about one call only.
bool in_files(const OptionRow& row) {
  return !row.of_verb && row.type != "switch" && row.key() != "config";
}

}  // namespace

StoredValues read_stored(const std::string& dump) {
  StoredValues stored;
  for (const IniEntry& entry : parse_ini(dump, "stored configuration")) stored[entry.key] = {entry.text, entry.comment};
  return stored;
}

Config::Config(std::vector<OptionRow> rows, std::map<std::string, Options> sections, std::vector<std::string> warnings)
    : rows_(std::move(rows)), sections_(std::move(sections)), warnings_(std::move(warnings)) {}

const Options& Config::section(const std::string& name) const {
  const auto found = sections_.find(name);
  NSP_REQUIRE(found != sections_.end(), "there is no section of options named '" + name + "'");
  return found->second;
}

const Options::Value& Config::value_of(const OptionRow& row) const {
  return section(row.section).values().at(row.name);
}

std::vector<std::string> Config::list(const std::string& section_name, const std::string& name) const {
  const std::string text = section(section_name).text(name);
  std::vector<std::string> parts;
  for (std::size_t from = 0; !text.empty();) {
    const std::size_t to = text.find('\n', from);
    parts.push_back(text.substr(from, to == std::string::npos ? to : to - from));
    if (to == std::string::npos) break;
    from = to + 1;
  }
  return parts;
}

std::vector<std::string> Config::given_keys() const {
  std::vector<std::string> keys;
  for (const OptionRow& row : rows_) {
    if (in_files(row) && origin_is_given(value_of(row).origin)) keys.push_back(row.key());
  }
  return keys;
}

std::vector<Config::Change> Config::changes(const StoredValues& stored) const {
  std::vector<Change> changed;
  for (const OptionRow& row : rows_) {
    const auto before = stored.find(row.key());
    if (row.of_verb || before == stored.end() || before->second.text == value_of(row).text) continue;
    changed.push_back({row.key(), before->second.text, value_of(row).text});
  }
  return changed;
}

std::string Config::dump() const {
  std::string text = "# The resolved configuration of nsp: each value with its origin. Can be used with --config.\n";
  std::string open;
  for (const OptionRow& row : rows_) {
    if (!in_files(row)) continue;
    if (row.section != open) {
      open = row.section;
      text += "\n[" + open + "]\n";
    }
    const Options::Value& value = value_of(row);
    text += row.name + " = " + ini_value(value.text) + "  # " + value.origin + "\n";
  }
  return text;
}

uint64_t Config::hash() const {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a, 64 bits
  const auto add = [&hash](const std::string& text) {
    for (const char c : text + '\0') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  for (const OptionRow& row : rows_) {
    if (!in_files(row) || row.key() == "backend" || row.key() == "plugin-path") continue;
    add(row.key());
    add(value_of(row).text);
  }
  return hash;
}

}  // namespace nsp
