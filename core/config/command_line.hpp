// The command line in two passes: the first knows core's keys and finds the names of the plug-ins, the second knows the
// plug-ins' keys too and is strict.
//
//   CommandLine line = CommandLine::parse(argc, argv, environment_of(environ));
//   if (line.help()) ...                                    // help.hpp
//   Options run = line.core("run", {});                     // where is the checkpoint?
//   std::vector<std::string> names = line.plugins(stored);  // what to load
//   Config config = line.resolve(rows of the plug-ins, stored);
//
// Order of values, later ones win: defaults, preset, checkpoint, configuration files, environment, command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/config/ini_file.hpp"

namespace nsp {

enum class Strictness;  // resolver.hpp
using Environment = std::map<std::string, std::string>;
Environment environment_of(const char* const* environ);

class CommandLine {
 public:
  // Reads arguments and configuration files. argv[0] is the program; argv[1] is the verb unless it starts with '-'.
  // Throws Error(usage): unknown verb, missing value, unreadable file.
  static CommandLine parse(int argc, const char* const* argv, Environment environment);

  const std::string& verb() const noexcept { return verb_; }
  bool verb_named() const noexcept { return verb_named_; }                         // or train by default
  const std::vector<std::string>& operands() const noexcept { return operands_; }  // checkpoint: {"ls", "runs/a"}
  bool help() const noexcept { return help_; }
  bool version() const noexcept { return version_; }

  // Options of a core section or, with the verb's name, of the verb, before the plug-ins are known. Keys that are not
  // core's are not judged yet. Throws Error(usage) on a bad value.
  Options core(const std::string& section, const StoredValues& stored) const;
  // Names that --plugins, a file, the environment or the stored run gives.
  std::vector<std::string> plugins(const StoredValues& stored) const;

  // The second pass: the keys that the verb obeys; the others are judged all the same. stored: values of the checkpoint to resume from,
  // else empty; those of plug-ins that are not used now are ignored. Throws Error(usage) on an unknown key, a bad value, or a key that
  // stands on the command line twice or without being obeyed.
  Config resolve(const std::vector<OptionRow>& plugins, const StoredValues& stored) const;

 private:
  CommandLine() = default;
  Config resolve_rows(std::vector<OptionRow> rows, Strictness strictness, const StoredValues& stored) const;
  struct File {
    std::string path;
    std::vector<IniEntry> entries;
  };
  std::string verb_;
  std::vector<std::string> operands_;
  std::vector<std::string> arguments_;  // what follows verb and operands
  Environment environment_;
  std::vector<File> files_;
  bool verb_named_ = false, help_ = false, version_ = false;
};

// The parts of a list like "a,b, c", without spaces around them; empty parts are dropped.
std::vector<std::string> split_names(const std::string& text, char separator);

}  // namespace nsp
