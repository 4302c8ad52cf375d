// Names of ops for messages and tables.
#pragma once

#include <string>

#include "nsp/backend.h"

namespace nsp {

// "matmul", as in nsp/backend.h; "number 99" for what is no op of it, which a module may say.
std::string op_name(nsp_op op);

}  // namespace nsp
