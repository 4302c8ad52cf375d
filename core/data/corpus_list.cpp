#include "core/data/corpus_list.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "nsp/error.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    if (const std::size_t first = item.find_first_not_of(" \t"); first != item.npos)
      items.push_back(item.substr(first, item.find_last_not_of(" \t") - first + 1));
    at = comma + 1;
  }
  return items;
}

// Takes the weight off an entry; 0 if it has none.
double take_weight(std::string& entry, const std::string& key) {
  const std::size_t colon = entry.rfind(':');
  if (colon == entry.npos || colon == 0 || exists(entry)) return 0;
  const char *begin = entry.data() + colon + 1, *end = entry.data() + entry.size();
  double weight = 0;
  const auto [stop, error] = std::from_chars(begin, end, weight);
  if (error != std::errc() || stop != end || begin == end) return 0;
  if (!(weight > 0) || !std::isfinite(weight) || weight > 1e9)
    throw Error(ErrorKind::input, key + " gives '" + entry +
                                      "' no usable weight. A weight is the share of the training sequences, in any unit, greater than 0. "
                                      "Give one, as in data/a:3,data/b:1, or leave the corpus out.");
  entry.resize(colon);
  return weight;
}

}  // namespace

std::vector<CorpusEntry> read_corpus_list(const std::string& text, const std::string& key) {
  if (!text.empty() && exists(text)) return {{{text}, 0}};
  std::vector<CorpusEntry> entries;
  std::string without;
  bool weighted = false, folders = false;
  for (std::string& item : split(text)) {
    const double weight = take_weight(item, key);
    weighted = weighted || weight > 0;
    if (weight == 0) without = item;
    std::error_code error;
    folders = folders || fs::is_directory(item, error);
    entries.push_back({{std::move(item)}, weight});
  }
  if (entries.empty())
    throw Error(ErrorKind::input, key + " is empty. It names the training data. Give a prepared folder, token files or auto.");
  if (weighted && !without.empty())
    throw Error(ErrorKind::input, key + " gives a weight to some corpora and none to '" + without +
                                      "'. Its share of the training sequences is not known. Give every corpus a weight, as in "
                                      "data/a:3,data/b:1, or none of them.");
  if (weighted || folders || entries.size() == 1) return entries;
  CorpusEntry one;
  for (CorpusEntry& entry : entries) one.paths.push_back(std::move(entry.paths.front()));
  return {one};
}

}  // namespace nsp
