// The text of --help.
#pragma once

#include <string>
#include <vector>

#include "core/config/option_row.hpp"

namespace nsp {

// Usage, verbs, and every option that the verb obeys, with its default, grouped by section: the verb's own, core's, the plug-ins'.
// verb_named: the user asked `nsp_app VERB --help`.
std::string help_text(const std::string& verb, bool verb_named, const std::vector<OptionRow>& plugins);

}  // namespace nsp
