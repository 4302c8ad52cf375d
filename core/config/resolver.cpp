#include "core/config/resolver.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/config/arguments.hpp"
#include "core/config/core_options.hpp"
#include "core/config/origin.hpp"
#include "core/config/presets.hpp"
#include "core/config/suggest.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

std::string variable_of(const OptionRow& row) {
  std::string name = "NSP_" + row.key();
  for (char& c : name) c = c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string number_text(double value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

double numeric(const std::string& type, const std::string& text) {
  if (type == "int") return static_cast<double>(parse::integer(text));
  if (type == "size") return static_cast<double>(parse::size(text));
  if (type == "time") return parse::seconds(text);
  return parse::number(text);
}

std::string section_of(const std::string& key) {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

// Which files are read and which sections they may have. Every verb judges its configuration, whatever it obeys of it.
bool says_what_is_read(const OptionRow& row) {
  return row.key() == "config" || row.key() == "plugins" || row.key() == "plugin-path";
}

// The option of the verb that a key was likely meant for: data.val_fraction is val-fraction to prepare, train.seed is seed.
const OptionRow* closest(const Verb& verb, const OptionRow& ignored, const std::vector<OptionRow>& rows) {
  const auto dashed = [](std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "-" + name;
  };
  const std::string name = dashed(ignored.name);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const OptionRow& row) {
    return row.type != "switch" && verb.obeys(row) && name.ends_with(dashed(row.name));
  });
  return found == rows.end() ? nullptr : &*found;
}

[[noreturn]] void fail_ignored(const Verb& verb, const OptionRow& row, const std::string& reason) {
  throw Error(ErrorKind::usage, "--" + row.key() + " has no effect on the verb " + verb.name + ". " + reason);
}

}  // namespace

void check_value(const OptionRow& row, const std::string& text) {
  parse::check(row.type, text);
  if ((!row.low && !row.high) || text == "auto") return;
  const bool automatic = row.type.compare(0, 5, "auto|") == 0;
  const double value = numeric(automatic ? row.type.substr(5) : row.type, text);
  if (row.low && value < *row.low) {
    throw Error(ErrorKind::usage, "It is too small. Write a value of at least " + number_text(*row.low) + ".");
  }
  if (row.high && value > *row.high) {
    throw Error(ErrorKind::usage, "It is too large. Write a value of at most " + number_text(*row.high) + ".");
  }
}

Resolver::Resolver(std::vector<OptionRow> rows, Strictness strictness) : rows_(std::move(rows)), strictness_(strictness) {
  for (const OptionRow& row : rows_) {
    NSP_REQUIRE(by_key_.emplace(row.key(), &row).second, "option " + row.key() + " is declared twice");
  }
}

const OptionRow* Resolver::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

void Resolver::assign(const OptionRow& row, const std::string& text, const std::string& origin) {
  try {
    check_value(row, text);
  } catch (const Error& e) {
    throw Error(ErrorKind::usage, row.key() + " = " + text + " (" + origin + ") cannot be used. " + e.what());
  }
  assignments_.push_back({&row, text, origin});
}

void Resolver::reject_unknown(const std::string& key, const std::string& written, const std::string& origin) const {
  std::vector<std::string> keys, plugins;
  for (const OptionRow& row : rows_) {
    keys.push_back(row.key());
    if (!row.section.empty() && !row.of_verb && !is_core_name(row.section) &&
        std::find(plugins.begin(), plugins.end(), row.section) == plugins.end()) {
      plugins.push_back(row.section);
    }
  }
  const std::string dashes = origin == kOriginCommandLine ? "--" : "";
  std::string why = "Neither nsp nor a plug-in in use has it", remedy = did_you_mean(key, keys, dashes);
  const std::string section = section_of(key);
  const bool known_section = is_core_name(section) || std::find(plugins.begin(), plugins.end(), section) != plugins.end();
  if (!section.empty() && !known_section) {
    why = "There is no section " + section + ", and no plug-in of that name is in use (plug-ins with options: " + comma_list(plugins) + ")";
    if (remedy.empty()) remedy = "If " + section + " is a plug-in, add it to --plugins.";
  }
  for (const Verb& verb : verbs()) {
    for (const OptionRow& row : verb_rows(verb.name)) {
      if (row.key() == key) why = "It belongs to the verb " + verb.name;
    }
  }
  if (remedy.empty()) remedy = "nsp_app --help lists all.";
  throw Error(ErrorKind::usage, written + " (" + origin + ") is not a known option. " + why + ". " + remedy);
}

// Files and the environment serve all verbs; the command line is about this one.
void Resolver::check_obeyed(const Verb& verb, const Assignment& given) const {
  const OptionRow& row = *given.row;
  if (verb.name == "plan") {  // of a job for the verb train: the whole command of that job may stand here
    const std::string run = given.text + "/config.ini";
    if (!row.of_verb && (row.key() != "run.dir" || !std::filesystem::exists(run))) return;
    if (row.key() == "run.dir")
      fail_ignored(verb, row, "It plans what options say and reads no run. To plan that run write --config " + given.text + "/config.ini.");
  }
  if (const OptionRow* instead = closest(verb, row, rows_))
    fail_ignored(verb, row, "It is for other verbs. Did you mean --" + instead->key() + "?");
  if (row.section == "model" && (verb.name == "eval" || verb.name == "generate"))
    fail_ignored(verb, row, "The model is the checkpoint's. Leave it out.");
  fail_ignored(verb, row, "It is for other verbs. Leave it out here; files and the environment may have it, for those verbs.");
}

void Resolver::add_stored(const StoredValues& stored) {
  for (const auto& [key, value] : stored) {
    const OptionRow* row = find(key);
    if (row == nullptr || !row->stored || row->of_verb) continue;
    assign(*row, value.text, origin_is_given(value.origin) ? kOriginStoredGiven : kOriginStored);
  }
}

void Resolver::add_file(const std::string& path, const std::vector<IniEntry>& entries) {
  std::map<std::string, int> lines;
  for (const IniEntry& entry : entries) {
    const OptionRow* row = find(entry.key);
    const std::string origin = origin_file(path, entry.line);
    const auto [first, is_new] = lines.emplace(entry.key, entry.line);
    if (!is_new && strictness_ == Strictness::all_keys) {
      throw Error(ErrorKind::usage, entry.key + " stands twice in " + path + ", in lines " + std::to_string(first->second) + " and " +
                                        std::to_string(entry.line) + ". It has one value. Remove one of them.");
    }
    if (row == nullptr || row->of_verb) {
      if (strictness_ == Strictness::all_keys) reject_unknown(entry.key, entry.key, origin);
      continue;
    }
    if (row->type == "switch" || row->key() == "config") {
      throw Error(ErrorKind::usage, entry.key + " (" + origin + ") has no place in a file. It is about one call only. Write --" +
                                        entry.key + " on the command line.");
    }
    // A line that a dumped configuration marks as not given stays not given, if it still says what holds anyway.
    if (!origin_is_given(entry.comment) && current_values().at(row).text == entry.text) continue;
    assign(*row, entry.text, origin);
  }
}

void Resolver::add_environment(const std::map<std::string, std::string>& environment) {
  std::map<std::string, const OptionRow*> variables;
  std::vector<std::string> names;
  for (const OptionRow& row : rows_) {
    if (row.of_verb || row.type == "switch") continue;
    variables[variable_of(row)] = &row;
    names.push_back(variable_of(row));
  }
  std::vector<std::string> unknown;
  for (const auto& [name, text] : environment) {
    // The loader reads the search path itself, and the files named by NSP_CONFIG have been read.
    const bool elsewhere = name == "NSP_PLUGIN_PATH" || name == "NSP_CONFIG" || name.compare(0, 9, "NSP_TEST_") == 0;
    if (name.compare(0, 4, "NSP_") != 0 || elsewhere) continue;
    const auto found = variables.find(name);
    if (found != variables.end()) {
      assign(*found->second, text, origin_environment(name));
    } else {
      unknown.push_back(name);
    }
  }
  if (unknown.empty() || strictness_ != Strictness::all_keys) return;
  const std::string hint = unknown.size() == 1 ? did_you_mean(unknown[0], names) : "";
  warnings_.push_back("The environment has NSP_ variables that are no options and are ignored: " + comma_list(unknown) + "." +
                      (hint.empty() ? "" : " " + hint));
}

void Resolver::add_arguments(const std::vector<std::string>& words) {
  std::set<std::string> seen;
  std::map<const OptionRow*, std::string> lists;
  const bool strict = strictness_ == Strictness::all_keys;
  for (const Argument& argument : parse_arguments(words, rows_)) {
    if (argument.stray || !argument.known) {
      if (!strict) continue;
      if (!argument.stray) reject_unknown(argument.key, argument.key[0] == '-' ? argument.key : "--" + argument.key, kOriginCommandLine);
      throw Error(ErrorKind::usage, "'" + argument.text +
                                        "' stands alone on the command line. Only a verb, as the first word, stands "
                                        "without an option. Write --key VALUE, and quote values with spaces.");
    }
    const OptionRow& row = *find(argument.key);
    if (row.type == "switch") {
      if (row.of_verb) assign(row, "true", kOriginCommandLine);
      continue;
    }
    if (row.repeatable) {
      std::string& list = lists[&row];
      list += (list.empty() ? "" : "\n") + argument.text;
      continue;
    }
    if (strict && !seen.insert(argument.key).second) {
      throw Error(ErrorKind::usage, "--" + argument.key + " stands twice on the command line. It has one value. Remove one of them.");
    }
    assign(row, argument.text, kOriginCommandLine);
  }
  for (const auto& [row, list] : lists) assign(*row, list, kOriginCommandLine);
}

Resolver::Values Resolver::current_values() const {
  Values values;
  for (const OptionRow& row : rows_) values[&row] = {row.default_value, kOriginDefault, row.type};
  const OptionRow* preset = find("model.preset");
  NSP_REQUIRE(preset != nullptr, "the rows hold those of core");
  std::string name = preset->default_value;
  for (const Assignment& a : assignments_) {
    if (a.row == preset) name = a.text;
  }
  for (const auto& [key, text] : preset_values(name)) {
    const OptionRow* row = find(key);
    NSP_REQUIRE(row != nullptr, "preset " + name + " sets " + key + ", which does not exist");
    values[row] = {text, origin_preset(name), row->type};
  }
  for (const Assignment& a : assignments_) values[a.row] = {a.text, a.origin, a.row->type};
  const std::string family = values.at(find("model.family")).text;
  for (const auto& [key, text] : family_values(family)) {
    Options::Value& value = values.at(find(key));
    if (value.text != "auto") continue;
    value.text = text;
    if (!origin_is_given(value.origin)) value.origin = origin_family(family);
  }
  return values;
}

// train.tokens and train.steps say the same thing in two ways: the stronger source decides, and puts the other back.
void Resolver::choose_length(Values* values) const {
  const OptionRow *steps = find("train.steps"), *tokens = find("train.tokens");
  const auto fresh = [](const Options::Value& v) { return origin_is_given(v.origin) && v.origin != kOriginStoredGiven; };
  Options::Value &s = values->at(steps), &t = values->at(tokens);
  if (t.text == "auto") return;
  if (fresh(s) && fresh(t)) {
    throw Error(ErrorKind::usage, "train.steps = " + s.text + " (" + s.origin + ") and train.tokens = " + t.text + " (" + t.origin +
                                      ") are both given. Each says how long to train. Remove one of them.");
  }
  if (fresh(s)) t = {tokens->default_value, kOriginDefault, tokens->type};
}

Config Resolver::resolve(const Verb* verb) const {
  for (const Assignment& a : assignments_) {
    const bool here = a.origin == kOriginCommandLine && !says_what_is_read(*a.row);
    if (verb != nullptr && here && !verb->obeys(*a.row)) check_obeyed(*verb, a);
  }
  Values values = current_values();
  choose_length(&values);
  std::map<std::string, std::map<std::string, Options::Value>> sections;
  std::vector<OptionRow> rows;
  for (const OptionRow& row : rows_) {
    if (verb != nullptr && !verb->obeys(row)) continue;
    rows.push_back(row);
    sections[row.section].emplace(row.name, values.at(&row));
  }
  std::map<std::string, Options> options;
  for (auto& [section, members] : sections) options.emplace(section, Options(section, std::move(members)));
  return Config(std::move(rows), std::move(options), warnings_);
}

}  // namespace nsp
