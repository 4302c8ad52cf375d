// Where modules are looked for.
#pragma once

#include <string>
#include <vector>

namespace nsp {

// In this order: folders of --plugin-path and of NSP_PLUGIN_PATH (lists with ':'), then the module folder beside the
// program. Each folder once. Never the current directory, unless it is named.
std::vector<std::string> plugin_search_path(const std::string& option, const std::string& environment, const std::string& program_path);

// The file of the running program.
std::string program_path();

}  // namespace nsp
