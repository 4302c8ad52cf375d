// Names below RUN/checkpoints: step_00000200/{manifest.h5, <run>_00000200_rank_0000.h5, ...}.
// A manifest makes the checkpoint exist. Files that end in .tmp belong to a transaction that is not committed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nsp {

inline constexpr const char* manifest_name = "manifest.h5";
inline constexpr const char* unfinished_suffix = ".tmp";

std::string step_name(int64_t step);                                        // "step_00000200"
std::string shard_name(const std::string& run, int64_t step, int rank);     // "<run>_00000200_rank_0000.h5"
std::string step_folder(const std::string& checkpoints_dir, int64_t step);  // "<dir>/step_00000200"
bool has_manifest(const std::string& folder);
// Steps that have a folder, ascending, with or without a manifest. Empty if the folder of checkpoints does not exist.
std::vector<int64_t> steps_in(const std::string& checkpoints_dir);
// Names of regular files in a folder that look like shards or unfinished files of nsp.
std::vector<std::string> store_files_in(const std::string& folder);
// Removes a step: the manifest first, so that a half-removed step does not exist.
void remove_step(const std::string& folder) noexcept;
// Removes what an uncommitted transaction left: unfinished files, and the whole step if it has no manifest.
void remove_uncommitted(const std::string& folder) noexcept;

}  // namespace nsp
