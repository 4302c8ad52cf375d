#include "core/data/auto_corpus.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/data/content_hash.hpp"
#include "core/data/file_search.hpp"
#include "core/data/prepare.hpp"
#include "core/data/prepared_index.hpp"
#include "core/data/token_file.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

bool is_header(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".h" || extension == ".hpp" || extension == ".hh") return true;
  return extension.empty() && std::find(path.begin(), path.end(), "c++") != path.end();
}

// Roots that this machine has: a missing one is no error here.
std::vector<std::string> headers_below(std::vector<std::string> roots) {
  if (roots.empty()) roots = {"/usr/include", "/usr/lib/gcc/*/*/include"};
  std::vector<std::string> headers;
  for (const std::string& root : roots) {
    try {
      for (std::string& file : find_files({root}).files)
        if (is_header(file)) headers.push_back(std::move(file));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
    }
  }
  return headers;
}

std::vector<std::string> within_budget(const std::vector<std::string>& headers, int64_t budget) {
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const std::string& header : headers) order.emplace_back(content_hash(header), header);
  std::sort(order.begin(), order.end());
  std::vector<std::string> chosen;
  int64_t bytes = 0;
  for (auto& [hash, header] : order) {
    std::error_code error;
    const auto size = fs::file_size(header, error);
    if (error || size == 0 || ::access(header.c_str(), R_OK) != 0) continue;
    bytes += static_cast<int64_t>(size);
    if (bytes > budget && !chosen.empty()) break;
    chosen.push_back(std::move(header));
  }
  return chosen;
}

bool is_reusable(const std::string& folder, const AutoCorpusOptions& options) {
  if (!is_prepared_folder(folder)) return false;
  try {
    const PreparedIndex index = read_prepared_index(folder);
    if (index.val_fraction != options.val_fraction || index.seed != options.seed || index.train.empty()) return false;
    for (const auto* split : {&index.train, &index.val})
      for (const PreparedShard& shard : *split) {
        const TokenFile file((fs::path(folder) / shard.name).string());
        file.verify();
        if (file.facts().checksum != shard.checksum || file.facts().tokens != shard.tokens) return false;
      }
    return true;
  } catch (const Error&) {
    return false;  // damaged: it is prepared anew
  }
}

}  // namespace

std::string prepare_auto_corpus(const std::string& run_dir, const AutoCorpusOptions& options,
                                const std::function<void(const std::string&)>& say) {
  const std::string folder = (fs::path(run_dir) / "data").string();
  if (is_reusable(folder, options)) {
    say("data: " + folder + ", prepared before");
    return folder;
  }
  PrepareOptions wanted;
  wanted.inputs = within_budget(headers_below(options.roots), options.budget_bytes);
  if (wanted.inputs.empty())
    throw Error(ErrorKind::input,
                "data.path is auto and there are no C or C++ headers on this machine. /usr/include has none. Prepare a text "
                "of yours with nsp_app prepare --input TEXT --output data/mine, then give --data.path data/mine");
  wanted.output = folder;
  wanted.val_fraction = options.val_fraction;
  wanted.seed = options.seed;
  const PrepareReport report = prepare(wanted);
  say("data: " + std::to_string(report.files) + " C and C++ headers of this machine (" + std::to_string(report.index.original_bytes) +
      " bytes), prepared into " + folder);
  return folder;
}

}  // namespace nsp
