#include "core/config/help.hpp"

#include <algorithm>

#include "core/config/core_options.hpp"

namespace nsp {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}

// "int", "auto or int", "constant|cosine"
std::string type_text(const std::string& type) {
  if (type == "switch") return "";
  if (type.compare(0, 7, "choice:") == 0) return type.substr(7);
  if (type.compare(0, 5, "auto|") == 0) return "auto|" + type.substr(5);
  return type;
}

std::string line_of(const OptionRow& row) {
  std::string text = "  " + padded("--" + row.key() + (row.key() == "help" ? ", -h" : "") + " " + type_text(row.type), 34) + row.help;
  if (!row.default_value.empty()) {
    text += " [" + row.default_value + "]";
  } else if (row.section == "model") {
    text += " [from the preset]";
  }
  return text + "\n";
}

std::string section_text(const std::string& title, const std::vector<OptionRow>& rows, const std::string& section) {
  std::string text;
  for (const OptionRow& row : rows) {
    if (row.section == section) text += line_of(row);
  }
  return text.empty() ? "" : "\n" + title + ":\n" + text;
}

std::vector<OptionRow> obeyed(const Verb& verb, std::vector<OptionRow> rows) {
  std::erase_if(rows, [&](const OptionRow& row) { return !verb.obeys(row); });
  return rows;
}

std::vector<std::string> sections_of(const std::vector<OptionRow>& rows) {
  std::vector<std::string> sections;
  for (const OptionRow& row : rows) {
    if (std::find(sections.begin(), sections.end(), row.section) == sections.end()) sections.push_back(row.section);
  }
  return sections;
}

// Where options may stand.
std::string how_to_give(const Verb& verb) {
  const bool own = !verb_rows(verb.name).empty(), keys = !verb.keys.empty();
  std::string text;
  if (own) text += "Options of " + verb.name + " stand on the command line only.\n";
  if (keys)
    text += "Every " + std::string(own ? "other " : "") +
            "key can also stand in an INI file (--config FILE), as `key = value` under `[section]`, and in the environment as\n"
            "NSP_SECTION_KEY. Later ones win: defaults, preset, checkpoint, files, environment, command line.\n";
  if (keys && verb.name != verbs().front().name)
    text += "Keys of other verbs may stand in files and the environment, which serve all; on this command line they are refused.\n";
  return text;
}

}  // namespace

std::string help_text(const std::string& verb, bool verb_named, const std::vector<OptionRow>& plugins) {
  const Verb shown = named_verb(verb);
  std::string text =
      "usage: nsp_app " + shown.name + (shown.operands.empty() ? "" : " " + shown.operands) + " [--key value ...]\n\n" + shown.help + "\n";
  if (!verb_named) {
    text = "usage: nsp_app [verb] [--key value ...]\n\nverbs:\n";
    for (const Verb& v : verbs()) text += "  " + padded(v.name + (v.operands.empty() ? "" : " " + v.operands), 28) + v.help + "\n";
  }
  text += section_text("options of " + verb, verb_rows(verb), verb);
  const std::vector<OptionRow> core = obeyed(shown, core_rows()), of_plugins = obeyed(shown, plugins);
  for (const std::string& section : sections_of(core)) text += section_text(section.empty() ? "general" : section, core, section);
  for (const std::string& section : sections_of(of_plugins)) text += section_text("plug-in " + section, of_plugins, section);
  text += "\n" + how_to_give(shown);
  text +=
      "Exit codes: 0 done, 1 error, 2 usage, 3 does not fit, 4 bad checkpoint or data, 5 diverged, 6 communication time-out,\n"
      "75 stopped early with a good checkpoint.\n";
  return text;
}

}  // namespace nsp
