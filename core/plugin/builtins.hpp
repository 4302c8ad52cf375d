// The plug-ins that are part of libnsp.so.
#pragma once

#include <vector>

#include "nsp/abi.h"

namespace nsp {

// The only list of them.
std::vector<const nsp_plugin_v1*> builtin_plugins();

}  // namespace nsp
