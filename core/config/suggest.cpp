#include "core/config/suggest.hpp"

#include <algorithm>
#include <utility>

namespace nsp {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::vector<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.empty()) return {};
  // A third of the letters may be wrong: more than that is another word, not a misspelling.
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    const std::size_t dot = candidate.rfind('.');
    if (dot != std::string::npos && word.find('.') == std::string::npos) {
      distance = std::min(distance, edit_distance(word, candidate.substr(dot + 1)));
    }
    // A cut-off name ("log" for "log_every") is near however much is missing.
    if (word.size() >= 3 && candidate.compare(0, word.size(), word) == 0) distance = std::min(distance, limit);
    if (distance <= limit) found.emplace_back(distance, candidate);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> names;
  for (const auto& [distance, name] : found) {
    if (distance == found[0].first && names.size() < 3 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates, const std::string& prefix) {
  const std::vector<std::string> names = nearest(word, candidates);
  if (names.empty()) return "";
  std::string text = "Did you mean " + prefix + names[0];
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " or " : ", ") + prefix + names[i];
  return text + "?";
}

std::string comma_list(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string text = names[0];
  for (std::size_t i = 1; i < names.size(); ++i) text += ", " + names[i];
  return text;
}

}  // namespace nsp
