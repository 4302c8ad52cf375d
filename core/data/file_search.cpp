#include "core/data/file_search.hpp"

#include <fnmatch.h>

#include <set>
#include <system_error>

#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;
using Parts = std::vector<std::string>;

bool has_wildcard(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}
bool hidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

class Search {
 public:
  explicit Search(const std::function<bool(const fs::path&)>& skip_folder) : skip_folder_(skip_folder) {}

  void add_input(const std::string& input) {
    const std::size_t before = found_.size() + seen_again_;
    std::error_code error;
    if (const auto type = fs::status(input, error).type(); type != fs::file_type::not_found && type != fs::file_type::none) {
      add_existing(input);
    } else if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
      throw Error(ErrorKind::input, "cannot look at " + input + ". " + error.message() + ". Check the path and its permissions.");
    } else if (has_wildcard(input)) {
      add_glob(input);
    } else {
      throw Error(ErrorKind::input, input + " does not exist. No file or folder has that name" +
                                        (fs::path(input).is_absolute() ? std::string() : " in " + fs::current_path(error).string()) +
                                        ". Check the path.");
    }
    if (found_.size() + seen_again_ == before)
      throw Error(ErrorKind::input, "no file matches '" + input + "' (empty corpus). " + why_nothing() +
                                        "Check the path, and quote globs so that the shell leaves ** to nsp.");
  }

  FoundFiles result() {
    FoundFiles result;
    result.skipped = std::move(skipped_);
    std::set<std::string> known;  // canonical names
    for (const std::string& path : found_) {
      if (known.insert(fs::canonical(path).string()).second)
        result.files.push_back(path);
      else
        ++result.skipped["further names of the same file"];
    }
    return result;
  }

 private:
  void add_existing(const fs::path& path) {
    if (fs::is_directory(path))
      walk(path);
    else
      add_file(path);
  }

  void add_file(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      ++skipped_[fs::exists(path, error) ? "not plain files (devices, pipes)" : "links that lead nowhere"];
      return;
    }
    if (!found_.insert(path.lexically_normal().generic_string()).second) ++seen_again_;
  }

  std::vector<fs::directory_entry> entries(const fs::path& folder) const {
    std::error_code error;
    std::vector<fs::directory_entry> result;
    for (fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error), end; !error && it != end; it.increment(error))
      result.push_back(*it);
    if (error)
      throw Error(ErrorKind::input, "cannot read the folder " + folder.string() + ". " + error.message() +
                                        ". Change its permissions, or name the inputs so that it is left out.");
    return result;
  }

  // True if a folder found on the way may be entered; counts why not.
  bool may_enter(const fs::directory_entry& folder) {
    if (hidden(folder.path())) return ++skipped_["hidden folders"], false;
    if (folder.is_symlink()) return ++skipped_["links to folders"], false;  // they may lead in circles
    if (skip_folder_ && skip_folder_(folder.path())) return ++skipped_["prepared folders"], false;
    return true;
  }

  void walk(const fs::path& folder) {
    for (const fs::directory_entry& entry : entries(folder)) {
      std::error_code error;
      if (entry.is_directory(error)) {
        if (may_enter(entry)) walk(entry.path());
      } else if (hidden(entry.path())) {
        ++skipped_["hidden files"];
      } else {
        add_file(entry.path());
      }
    }
  }

  void add_glob(const std::string& pattern) {
    Parts parts;
    const fs::path path(pattern);
    for (const fs::path& part : path.relative_path())
      if (!part.empty()) parts.push_back(part.string());
    expand(path.root_path(), parts, 0);
  }

  void expand(const fs::path& base, const Parts& parts, std::size_t i) {
    std::error_code error;
    if (i == parts.size()) return add_existing(base);
    if (parts[i] == "**") {
      if (i + 1 == parts.size()) return walk(base.empty() ? fs::path(".") : base);
      expand(base, parts, i + 1);
      for (const fs::directory_entry& entry : entries(base))
        if (entry.is_directory(error) && may_enter(entry)) expand(below(base, entry), parts, i);
      return;
    }
    if (!has_wildcard(parts[i])) {
      const fs::path next = base / parts[i];
      if (fs::exists(next, error) && (i + 1 == parts.size() || fs::is_directory(next, error))) expand(next, parts, i + 1);
      return;
    }
    if (!base.empty() && !fs::is_directory(base, error)) return;
    for (const fs::directory_entry& entry : entries(base)) {
      if (::fnmatch(parts[i].c_str(), entry.path().filename().c_str(), FNM_PERIOD) != 0) continue;
      if (i + 1 < parts.size() && !entry.is_directory(error)) continue;
      if (entry.is_directory(error) && skip_folder_ && skip_folder_(entry.path()))
        ++skipped_["prepared folders"];
      else
        expand(below(base, entry), parts, i + 1);
    }
  }

  // Without the "./" that listing the current folder puts before a name.
  static fs::path below(const fs::path& base, const fs::directory_entry& entry) { return base / entry.path().filename(); }

  std::string why_nothing() const {
    if (skipped_.empty()) return "";
    std::string text = "Passed over:";
    for (const auto& [why, count] : skipped_) text += " " + std::to_string(count) + " " + why + ",";
    text.back() = '.';
    return text + " ";
  }

  const std::function<bool(const fs::path&)>& skip_folder_;
  std::set<std::string> found_;  // sorted, so that the order of directory entries does not matter
  std::size_t seen_again_ = 0;   // an input that adds only known files is no mistake
  std::map<std::string, int64_t> skipped_;
};

}  // namespace

FoundFiles find_files(const std::vector<std::string>& inputs, const std::function<bool(const fs::path&)>& skip_folder) {
  Search search(skip_folder);
  for (const std::string& input : inputs) search.add_input(input);
  return search.result();
}

}  // namespace nsp
