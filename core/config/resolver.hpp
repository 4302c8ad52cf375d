// Turns what each source says into one value per key.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/config/core_options.hpp"
#include "core/config/ini_file.hpp"

namespace nsp {

// What happens to a key without a row: in the first pass it may be a plug-in's, in the second it is an error.
enum class Strictness { known_keys_only, all_keys };

// Sources are added from the weakest to the strongest; defaults and the preset come below all of them.
// Every function throws Error(usage) on a value that does not parse, naming key, value, type and origin, and, if strict,
// on an unknown key.
class Resolver {
 public:
  Resolver(std::vector<OptionRow> rows, Strictness strictness);  // REQUIRES that rows hold core's
  Resolver(const Resolver&) = delete;                            // members point into rows_
  Resolver& operator=(const Resolver&) = delete;
  void add_stored(const StoredValues& stored);  // unknown keys are ignored: a plug-in may have been dropped
  void add_file(const std::string& path, const std::vector<IniEntry>& entries);
  void add_environment(const std::map<std::string, std::string>& environment);  // unknown NSP_ variables give one warning
  void add_arguments(const std::vector<std::string>& words);                    // the command line behind the verb
  // Every value, with what follows from others, of the keys that the verb obeys; of all keys without one. Throws Error(usage) on a
  // key of the command line that the verb does not obey, but for those that say which files and plug-ins make up the configuration
  // and, with plan, the others of the planned job.
  Config resolve(const Verb* verb) const;

 private:
  struct Assignment {
    const OptionRow* row;
    std::string text, origin;
  };
  const OptionRow* find(const std::string& key) const;
  void assign(const OptionRow& row, const std::string& text, const std::string& origin);
  [[noreturn]] void reject_unknown(const std::string& key, const std::string& written, const std::string& origin) const;
  void check_obeyed(const Verb& verb, const Assignment& given) const;

  using Values = std::map<const OptionRow*, Options::Value>;
  Values current_values() const;  // defaults, preset, what was assigned so far, and what follows from the family
  void choose_length(Values* values) const;

  std::vector<OptionRow> rows_;
  std::map<std::string, const OptionRow*> by_key_;
  Strictness strictness_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> warnings_;
};

// Throws Error(usage) unless text is allowed for the row: type and range.
void check_value(const OptionRow& row, const std::string& text);

}  // namespace nsp
