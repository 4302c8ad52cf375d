#include "core/config/arguments.hpp"

#include <boost/program_options.hpp>
#include <set>

#include "nsp/error.hpp"

namespace nsp {
namespace po = boost::program_options;

std::vector<Argument> parse_arguments(const std::vector<std::string>& words, const std::vector<OptionRow>& rows) {
  po::options_description known;
  std::set<std::string> keys;
  for (const OptionRow& row : rows) {
    const std::string key = row.key();
    keys.insert(key);
    if (row.type == "switch") {
      known.add_options()((key == "help" ? "help,h" : key).c_str(), "");
    } else {
      known.add_options()(key.c_str(), po::value<std::string>(), "");
    }
  }
  using namespace po::command_line_style;
  std::vector<Argument> arguments;
  try {
    const po::parsed_options parsed =
        po::command_line_parser(words)
            .options(known)
            .style(allow_long | long_allow_adjacent | long_allow_next | allow_short | allow_dash_for_short | short_allow_next)
            .allow_unregistered()
            .run();
    for (const po::option& option : parsed.options) {
      Argument argument{option.string_key, option.value.empty() ? "" : option.value[0], !option.unregistered, option.position_key >= 0};
      if (argument.stray || option.unregistered) argument.known = false;
      // Boost takes any word as a value, a forgotten one included.
      const std::string& text = argument.text;
      if (argument.known && text.compare(0, 2, "--") == 0 && keys.count(text.substr(2, text.find('=') - 2)) > 0) {
        throw Error(ErrorKind::usage,
                    "--" + argument.key + " has no value. The next word, " + text + ", is an option. Write --" + argument.key + " VALUE.");
      }
      arguments.push_back(argument);
    }
  } catch (const po::error& e) {
    throw Error(ErrorKind::usage,
                std::string("The command line cannot be read: ") + e.what() + ". Options are written --key VALUE or --key=VALUE.");
  }
  return arguments;
}

}  // namespace nsp
