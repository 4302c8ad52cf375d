// Names near a misspelt one, for error texts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nsp {

// Number of single-letter insertions, deletions, replacements and swaps of neighbours between two words
// (optimal string alignment distance).
std::size_t edit_distance(const std::string& a, const std::string& b);

// Those of `candidates` that `word` is most likely a misspelling of, equally near, at most three; may be empty.
// A dotted candidate also matches by its last part, so "layers" finds "model.layers".
std::vector<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates);

// "Did you mean a or b?" with each name behind `prefix`, or "" if nothing is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates, const std::string& prefix = "");

// "a, b, c" or "none".
std::string comma_list(const std::vector<std::string>& names);

}  // namespace nsp
