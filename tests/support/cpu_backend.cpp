#include "tests/support/cpu_backend.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "tests/support/module_file.hpp"

namespace nsp::test {
namespace {

std::vector<std::string> candidates(const std::string& path) {
  std::vector<std::string> files;
  std::stringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("libnsp_backend_cpu_", 0) == 0 && name.ends_with(".so") && module_runs_here(name))
        files.push_back(entry.path().string());
    }
  }
  return files;
}

}  // namespace

const nsp_backend* load_cpu_backend() {
  const char* path = std::getenv("NSP_PLUGIN_PATH");
  std::string tried = std::string("no usable CPU backend in NSP_PLUGIN_PATH=") + (path != nullptr ? path : "(not set)");
  const nsp_plugin_v1* best = nullptr;
  int64_t best_score = 0;
  for (const std::string& file : candidates(path != nullptr ? path : "")) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += std::string("; ") + dlerror();
      continue;
    }
    const auto* plugin = static_cast<const nsp_plugin_v1*>(dlsym(handle, "nsp_plugin"));
    if (plugin == nullptr || plugin->magic != NSP_PLUGIN_MAGIC || plugin->create == nullptr) {
      tried += "; " + file + " has no descriptor";
      continue;
    }
    char reason[256] = "";
    const int64_t score = plugin->probe != nullptr ? plugin->probe(reason, sizeof reason) : 1;
    if (score <= 0) tried += "; " + file + ": " + reason;
    if (score > best_score) {
      best = plugin;
      best_score = score;
    }
  }
  const auto* table = best != nullptr ? static_cast<const nsp_backend*>(best->create(nullptr)) : nullptr;
  if (table == nullptr) throw std::runtime_error(tried);
  return table;
}

}  // namespace nsp::test
