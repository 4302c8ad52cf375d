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
};
std::vector<Verb> verbs();

// Top level and the sections model, data, train, run, comm, in the order in which they are printed.
std::vector<OptionRow> core_rows();

// Options that only this verb has; empty for most.
std::vector<OptionRow> verb_rows(const std::string& verb);

// Names that no plug-in may have: the sections and top-level keys of core, and the verbs (they name sections too).
bool is_core_name(const std::string& name);

}  // namespace nsp
