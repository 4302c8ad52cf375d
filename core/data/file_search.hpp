// The files that a list of inputs stands for: files, folders (all plain files below them) and globs (*, ?, [...], and ** for any
// depth of folders). Hidden entries (name begins with a dot) and links to folders are passed over in folders and globs unless named.
// The result depends on the names alone: sorted by path, each file once however often and by whatever link it is reached.
// Errors: Error(input) if an input stands for nothing or a folder cannot be read. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nsp {

struct FoundFiles {
  std::vector<std::string> files;          // as reached from the inputs, sorted
  std::map<std::string, int64_t> skipped;  // why -> how many
};

// skip_folder: true for a folder that is passed over although it is below an input; empty = none.
FoundFiles find_files(const std::vector<std::string>& inputs, const std::function<bool(const std::filesystem::path&)>& skip_folder = {});

}  // namespace nsp
