#include "core/config/command_line.hpp"

#include <algorithm>

#include "core/config/arguments.hpp"
#include "core/config/core_options.hpp"
#include "core/config/resolver.hpp"
#include "core/config/suggest.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

const Verb* find_verb(const std::vector<Verb>& all, const std::string& name) {
  for (const Verb& verb : all) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

Verb verb_of(const std::string& word) {
  const std::vector<Verb> all = verbs();
  if (const Verb* verb = find_verb(all, word)) return *verb;
  std::vector<std::string> names;
  for (const Verb& verb : all) names.push_back(verb.name);
  const std::string hint = did_you_mean(word, names);
  throw Error(ErrorKind::usage, "There is no verb '" + word + "'. The verbs are " + comma_list(names) + ". " +
                                    (hint.empty() ? "nsp_app --help says what they do." : hint));
}

void check_operands(const std::string& verb, const std::vector<std::string>& operands, bool help) {
  if (help) return;
  const std::string action = operands.empty() ? "" : operands[0];
  if (verb == "bench" && action != "ops")
    throw Error(ErrorKind::usage, "The verb bench needs to know what to measure. " +
                                      (operands.empty() ? std::string("Nothing follows it") : "'" + action + "' is not ops") +
                                      ". Write nsp_app bench ops.");
  if (verb != "checkpoint" || action == "ls" || action == "verify") return;
  throw Error(ErrorKind::usage, "The verb checkpoint needs to know what to do. " +
                                    (operands.empty() ? std::string("Nothing follows it") : "'" + action + "' is neither ls nor verify") +
                                    ". Write nsp_app checkpoint ls RUN, or nsp_app checkpoint verify RUN.");
}

std::vector<OptionRow> rows_for(const std::string& verb) {
  std::vector<OptionRow> rows = core_rows();
  for (const OptionRow& row : verb_rows(verb)) rows.push_back(row);
  return rows;
}

}  // namespace

Environment environment_of(const char* const* environ) {
  Environment environment;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string entry = *environ;
    const std::size_t equal = entry.find('=');
    if (equal != std::string::npos) environment[entry.substr(0, equal)] = entry.substr(equal + 1);
  }
  return environment;
}

std::vector<std::string> split_names(const std::string& text, char separator) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    const std::size_t first = text.find_first_not_of(" \t", from);
    if (first < to) names.push_back(text.substr(first, text.find_last_not_of(" \t", to - 1) - first + 1));
    from = to + 1;
  }
  return names;
}

CommandLine CommandLine::parse(int argc, const char* const* argv, Environment environment) {
  CommandLine line;
  line.environment_ = std::move(environment);
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  std::size_t next = 0;
  line.verb_named_ = !words.empty() && !words[0].empty() && words[0][0] != '-';
  const Verb verb = line.verb_named_ ? verb_of(words[next++]) : verbs().front();
  line.verb_ = verb.name;
  while (next < words.size() && line.operands_.size() < verb.max_operands && (words[next].empty() || words[next][0] != '-')) {
    line.operands_.push_back(words[next++]);
  }
  line.arguments_.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());

  std::vector<std::string> paths;
  const auto variable = line.environment_.find("NSP_CONFIG");
  if (variable != line.environment_.end()) paths = split_names(variable->second, ':');
  for (const Argument& argument : parse_arguments(line.arguments_, rows_for(line.verb_))) {
    if (!argument.known) continue;
    if (argument.key == "help") line.help_ = true;
    if (argument.key == "version") line.version_ = true;
    if (argument.key == "config") paths.push_back(argument.text);
  }
  check_operands(line.verb_, line.operands_, line.help_ || line.version_);
  for (const std::string& path : paths) line.files_.push_back({path, read_ini(path)});
  return line;
}

Config CommandLine::resolve_rows(std::vector<OptionRow> rows, Strictness strictness, const StoredValues& stored) const {
  Resolver resolver(std::move(rows), strictness);
  resolver.add_stored(stored);
  for (const File& file : files_) resolver.add_file(file.path, file.entries);
  resolver.add_environment(environment_);
  resolver.add_arguments(arguments_);
  const Verb verb = named_verb(verb_);
  return resolver.resolve(strictness == Strictness::all_keys ? &verb : nullptr);
}

Options CommandLine::core(const std::string& section, const StoredValues& stored) const {
  return resolve_rows(rows_for(verb_), Strictness::known_keys_only, stored).section(section);
}

std::vector<std::string> CommandLine::plugins(const StoredValues& stored) const {
  return split_names(core("", stored).text("plugins"), ',');
}

Config CommandLine::resolve(const std::vector<OptionRow>& plugins, const StoredValues& stored) const {
  std::vector<OptionRow> rows = rows_for(verb_);
  for (const OptionRow& row : plugins) rows.push_back(row);
  return resolve_rows(std::move(rows), Strictness::all_keys, stored);
}

}  // namespace nsp
