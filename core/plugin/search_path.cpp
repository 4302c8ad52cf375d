#include "core/plugin/search_path.hpp"

#include <algorithm>
#include <filesystem>

namespace nsp {

std::vector<std::string> plugin_search_path(const std::string& option, const std::string& environment, const std::string& program_path) {
  std::vector<std::string> folders;
  const auto add = [&folders](const std::filesystem::path& folder) {
    const std::string text = folder.lexically_normal().string();
    if (std::find(folders.begin(), folders.end(), text) == folders.end()) folders.push_back(text);
  };
  for (const std::string& list : {option, environment}) {
    for (std::size_t from = 0; from <= list.size();) {
      const std::size_t to = std::min(list.find(':', from), list.size());
      if (to > from) add(list.substr(from, to - from));
      from = to + 1;
    }
  }
  add(std::filesystem::path(program_path).parent_path() / ".." / NSP_MODULE_DIR);
  return folders;
}

std::string program_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace nsp
