// The resolved configuration: every value with its origin. Immutable; any thread may read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/config/option_row.hpp"
#include "nsp/options.hpp"

namespace nsp {

// Values of the run that wrote a checkpoint, by key ("train.lr"), with the origins they had there.
struct StoredValue {
  std::string text, origin;
};
using StoredValues = std::map<std::string, StoredValue>;

// Reads back what Config::dump wrote. Throws Error(usage) on text that is no INI file.
StoredValues read_stored(const std::string& dump);

class Config {
 public:
  // sections: "" for the top level, core's, the plug-ins', and the verb's own options under the name of the verb.
  Config(std::vector<OptionRow> rows, std::map<std::string, Options> sections, std::vector<std::string> warnings);

  // Options of a section. REQUIRES that core, the verb or a given plug-in declared it.
  const Options& section(const std::string& name) const;
  // The values of a repeatable option; empty if it was not given.
  std::vector<std::string> list(const std::string& section, const std::string& name) const;

  // Keys that a user gave, in the order of the rows; options of the verb are not among them.
  std::vector<std::string> given_keys() const;

  struct Change {
    std::string key, stored, now;
  };
  // Keys whose value differs from that in the stored run; a key that only one of the two has does not count.
  std::vector<Change> changes(const StoredValues& stored) const;

  // An INI file, readable with --config and read_stored: each value with its origin in a comment.
  std::string dump() const;
  // FNV-1a of keys and values: equal on all ranks of a job. Left out: what may differ from node to node (backend,
  // plugin-path) and where the values came from.
  uint64_t hash() const;

  // Lines for the user, such as an unknown NSP_ variable.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  const std::vector<OptionRow>& rows() const noexcept { return rows_; }

 private:
  const Options::Value& value_of(const OptionRow& row) const;
  std::vector<OptionRow> rows_;
  std::map<std::string, Options> sections_;
  std::vector<std::string> warnings_;
};

}  // namespace nsp
