#include "io/step_folder.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "io/durable.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

std::string padded(int64_t number, int width) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*lld", width, static_cast<long long>(number));
  return text;
}

// The step of a folder name, or -1. Only the spelling that step_name makes counts.
int64_t step_of(const std::string& name) {
  if (name.rfind("step_", 0) != 0 || name.size() > 5 + 18) return -1;
  const std::string digits = name.substr(5);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return -1;
  const int64_t step = std::stoll(digits);
  return step_name(step) == name ? step : -1;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string step_name(int64_t step) {
  return "step_" + padded(step, 8);
}
std::string shard_name(const std::string& run, int64_t step, int rank) {
  return run + "_" + padded(step, 8) + "_rank_" + padded(rank, 4) + ".h5";
}
std::string step_folder(const std::string& checkpoints_dir, int64_t step) {
  return checkpoints_dir + "/" + step_name(step);
}

bool has_manifest(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(folder + "/" + manifest_name, ignored);
}

std::vector<int64_t> steps_in(const std::string& checkpoints_dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator at(checkpoints_dir, error), end; !error && at != end; at.increment(error)) {
    const int64_t step = step_of(at->path().filename().string());
    std::error_code ignored;
    if (step >= 0 && at->is_directory(ignored)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> store_files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool shard = ends_with(name, ".h5") && name.find("_rank_") != std::string::npos;
    std::error_code ignored;
    if ((shard || ends_with(name, std::string(".h5") + unfinished_suffix)) && at->is_regular_file(ignored)) names.push_back(name);
  }
  return names;
}

void remove_step(const std::string& folder) noexcept {
  remove_quietly(folder + "/" + manifest_name);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

void remove_uncommitted(const std::string& folder) noexcept {
  try {
    if (!has_manifest(folder)) return remove_step(folder);
    for (const std::string& name : store_files_in(folder)) {
      if (ends_with(name, unfinished_suffix)) remove_quietly(folder + "/" + name);
    }
  } catch (...) {  // out of memory: prune will find what is left
  }
}

}  // namespace nsp
