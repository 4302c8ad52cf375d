#include "core/data/staged_folder.hpp"

#include <unistd.h>

#include <system_error>

#include "core/data/output_file.hpp"
#include "core/data/prepared_index.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

// Absolute, without links and without a trailing slash, so that names can be appended.
fs::path resolved(const std::string& output) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(output, error), error);
  if (error) path = fs::path(output).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

bool is_ours(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return name == "prepare.ini" || (name.ends_with(".tokens") && (name.starts_with("train_") || name.starts_with("val_")));
}

// What makes the folder no prepared one; empty if it may be replaced.
std::string stranger_in(const fs::path& folder) {
  if (fs::is_empty(folder)) return "";
  if (!is_prepared_folder(folder.string())) return "it has no prepare.ini of nsp";
  for (const auto& entry : fs::directory_iterator(folder))
    if (!is_ours(entry.path())) return "it also holds " + entry.path().filename().string();
  return "";
}

}  // namespace

StagedFolder::StagedFolder(const std::string& output) : output_(resolved(output)) {
  temporary_ = output_.string() + ".tmp-" + std::to_string(::getpid());
  try {
    if (fs::exists(output_)) {
      const std::string stranger = fs::is_directory(output_) ? stranger_in(output_) : "it is not a folder";
      if (!stranger.empty())
        throw Error(ErrorKind::input, output_.string() + " exists and is not a prepared folder: " + stranger +
                                          ". Replacing it could delete what is yours. Choose another --output or remove it yourself.");
    }
    fs::create_directories(output_.parent_path());
    fs::remove_all(temporary_);  // of an earlier process of this number that was killed
    fs::create_directory(temporary_);
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::input, "cannot create the output folder " + output_.string() + ". " + error.code().message() +
                                      ". Choose an --output that may be written.");
  }
}

StagedFolder::~StagedFolder() {
  if (committed_) return;
  std::error_code ignored;  // nothing better can be done while another error is on its way
  fs::remove_all(temporary_, ignored);
}

void StagedFolder::commit() {
  const fs::path old = output_.string() + ".old-" + std::to_string(::getpid());
  try {
    const bool replaces = fs::exists(output_);
    if (replaces) fs::rename(output_, old);
    try {
      fs::rename(temporary_, output_);
    } catch (...) {
      std::error_code ignored;
      if (replaces) fs::rename(old, output_, ignored);
      throw;
    }
    committed_ = true;
    sync_folder(output_.parent_path().string());
    if (replaces) fs::remove_all(old);
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::io, "cannot put the prepared data in place at " + output_.string() + ". " + error.what() +
                                   ". Check that no other program uses that folder, and run it again.");
  }
}

bool StagedFolder::belongs_to(const fs::path& folder, const std::string& output) {
  const std::string name = resolved(folder.string()).string(), ours = resolved(output).string();
  return name == ours || name.starts_with(ours + ".tmp-") || name.starts_with(ours + ".old-");
}

}  // namespace nsp
