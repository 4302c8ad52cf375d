// Command lines of tests, with the options of one small plug-in.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/config/command_line.hpp"
#include "core/config/core_options.hpp"
#include "nsp/error.hpp"

namespace nsp {

inline std::vector<OptionRow> desloc_rows() {
  static const nsp_option rows[] = {{"kx", "period", "32", "period of the weights"}, {"on", "bool", "false", "a flag"}};
  return plugin_rows("desloc", rows, 2);
}

inline CommandLine line_of(std::vector<std::string> words, Environment environment = {}) {
  std::vector<const char*> argv{"nsp_app"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return CommandLine::parse(static_cast<int>(argv.size()), argv.data(), std::move(environment));
}

inline Config resolved(std::vector<std::string> words, Environment environment = {}, const StoredValues& stored = {}) {
  return line_of(std::move(words), std::move(environment)).resolve(desloc_rows(), stored);
}

inline std::string refusal(std::vector<std::string> words, Environment environment = {}, const StoredValues& stored = {}) {
  try {
    resolved(std::move(words), std::move(environment), stored);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
    return e.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace nsp
