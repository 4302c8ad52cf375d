// One option as core and plug-ins declare it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nsp/abi.h"

namespace nsp {

struct OptionRow {
  std::string section;  // "" = top level; for an option of one verb: the verb
  std::string name;
  std::string type;           // as in nsp_option; "switch" takes no value
  std::string default_value;  // "" = none
  std::string help;
  std::optional<double> low = {}, high = {};  // allowed values of a numeric type, inclusive
  bool of_verb = false;                       // written --name, only on the command line
  bool repeatable = false;                    // may stand several times on the command line
  bool stored = true;                         // a resumed run takes it from its checkpoint

  // How it is written: "train.lr", "plugins", "prompt".
  std::string key() const { return section.empty() || of_verb ? name : section + "." + name; }
};

// The rows of a plug-in's section.
inline std::vector<OptionRow> plugin_rows(const std::string& plugin, const nsp_option* options, uint32_t count) {
  std::vector<OptionRow> rows;
  for (uint32_t i = 0; i < count; ++i) {
    rows.push_back({plugin, options[i].name, options[i].type, options[i].default_value, options[i].help ? options[i].help : ""});
  }
  return rows;
}

}  // namespace nsp
