#include "tests/policies/plugin_object.hpp"

#include <gtest/gtest.h>

#include "nsp/error.hpp"

namespace nsp::test {

Options options_of(const nsp_plugin_v1& descriptor, const std::map<std::string, std::string>& given) {
  std::map<std::string, Options::Value> values;
  for (uint32_t i = 0; i < descriptor.option_count; ++i) {
    const nsp_option& row = descriptor.options[i];
    values[row.name] = {row.default_value, "default", row.type};
  }
  for (const auto& [name, text] : given) {
    NSP_REQUIRE(values.count(name) == 1, "the plug-in has the option " + name);
    values[name].text = text;
    values[name].origin = "command line";
  }
  for (const auto& [name, value] : values) parse::check(value.type, value.text);
  return Options(descriptor.name, values);
}

std::string usage_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "an Error(usage) was expected";
  return "";
}

}  // namespace nsp::test
