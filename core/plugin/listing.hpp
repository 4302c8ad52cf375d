// What `nsp_app plugins` prints.
#pragma once

#include <string>

#include "core/plugin/registry.hpp"

namespace nsp {

// A block for each kind, one line for each plug-in: name, version, state, ABI, score, path; below a refused one the reason.
std::string plugin_listing(const Registry& registry);

}  // namespace nsp
