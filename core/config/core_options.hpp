// The options that belong to core: the frozen part of the command line (tests/golden/cli_core.txt).
#pragma once

#include <string>
#include <vector>

#include "core/config/option_row.hpp"

namespace nsp {

// A verb of nsp_app; the first one, train, is the default.
struct Verb {
  std::string name;
  std::string operands;  // words after the verb, for the help: "ls|verify [RUN]"
  std::size_t max_operands;
  std::string help;
  // What it obeys of core's keys, besides help and version: "train.lr", "model.*" (a section), "*" (all). The same files and
  // environment serve several verbs, so any key may stand there; only these keys reach the verb, and only they, config, plugins and
  // plugin-path may stand on its command line.
  std::vector<std::string> keys;
  bool plugin_options = false;  // and whether it obeys those of the policies
  // Whether it obeys this option: of core, of a plug-in, or of the verb itself.
  bool obeys(const OptionRow& row) const;
};
std::vector<Verb> verbs();
Verb named_verb(const std::string& name);  // REQUIRES that there is one

// Top level and the sections model, data, train, run, comm, in the order in which they are printed.
std::vector<OptionRow> core_rows();

// Options that only this verb has; empty for most.
std::vector<OptionRow> verb_rows(const std::string& verb);

// Names that no plug-in may have: the sections and top-level keys of core, and the verbs (they name sections too).
bool is_core_name(const std::string& name);

}  // namespace nsp
