// Words of the command line as keys and values, by Boost.Program_options without prefix guessing.
#pragma once

#include <string>
#include <vector>

#include "core/config/option_row.hpp"

namespace nsp {

struct Argument {
  std::string key;     // "train.lr", without dashes; of an unknown option as it was written
  std::string text;    // the value; empty for switches
  bool known = false;  // one of the rows
  bool stray = false;  // a word that belongs to no option; text holds it
};

// In the order of the words. Words behind an unknown option come out as stray ones: without its row nobody knows whether
// it takes a value. Throws Error(usage) if a known option lacks its value or has one that it does not take.
std::vector<Argument> parse_arguments(const std::vector<std::string>& words, const std::vector<OptionRow>& rows);

}  // namespace nsp
