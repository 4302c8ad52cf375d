// Named sets of sizes, and what follows from the family of a model.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace nsp {

std::vector<std::string> preset_names();

// Key -> text of a preset; every preset sets all sizes of the model. REQUIRES a name from preset_names().
std::map<std::string, std::string> preset_values(const std::string& name);

// Key -> text of what `auto` means for a model of this family.
std::map<std::string, std::string> family_values(const std::string& family);

}  // namespace nsp
