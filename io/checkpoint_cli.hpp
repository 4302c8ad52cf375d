// The texts of `nsp_app checkpoint ls` and `verify`.
#pragma once

#include <iosfwd>
#include <string>

namespace nsp {

// One line per step folder: step, size, when, replicas, state. Reads manifests only. Returns 0; Error(input) if run_dir is no folder.
int checkpoint_ls(const std::string& run_dir, std::ostream& out);
// Reads every piece of every checkpoint. Returns 0, or 4 if one is damaged or torn; Error(input) if there is nothing to verify.
int checkpoint_verify(const std::string& run_dir, std::ostream& out);

}  // namespace nsp
