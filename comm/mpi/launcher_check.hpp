// Finds the start that went wrong quietly: N processes that each think they are the whole job.
#pragma once

#include <functional>
#include <string>

namespace nsp {

// Compares the size that MPI reports with what the launcher says in its environment (environment: as std::getenv). Throws
// Error(comm) with cause and cure if they differ. library: which MPI the module was built with, for the text.
void check_launcher(int size, const std::string& library, const std::function<const char*(const char*)>& environment);

}  // namespace nsp
