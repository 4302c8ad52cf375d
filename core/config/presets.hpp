// Named sets of sizes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace nsp {

std::vector<std::string> preset_names();

// Key -> text of a preset; every preset sets all sizes of the model. REQUIRES a name from preset_names().
std::map<std::string, std::string> preset_values(const std::string& name);

}  // namespace nsp
