// All plug-ins that this process can see, and which of them the run uses.
//
// A module's file is judged by its note first; it is opened only when it is asked for, or, for a backend, when the best
// one is looked for. Passed around, never global; outlives every object that a plug-in made. Thread: main thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/config/option_row.hpp"
#include "core/plugin/checks.hpp"
#include "core/plugin/note.hpp"

namespace nsp {

struct PluginEntry {
  enum class State { available, loaded, refused };
  Note note;         // of a module without a readable note: kind and name from its file name
  std::string path;  // "" = built in
  State state = State::available;
  std::string reason;                         // why it is refused
  int64_t score = 0;                          // > 0 once it has been probed
  const nsp_plugin_v1* descriptor = nullptr;  // once loaded
};

// The plug-ins of a run that --plugins decides about; owned by the registry.
struct Selection {
  const PluginEntry *sync = nullptr, *parallel = nullptr, *memory = nullptr, *optimizer = nullptr;
};

class Registry {
 public:
  // Looks at the folders, in order; within one, by file name. A name is taken by the first plug-in that has it, be it
  // usable or not, so that a stale module is reported and not passed over in silence.
  Registry(const std::vector<const nsp_plugin_v1*>& builtins, std::vector<std::string> folders, Host host);

  // Opens what --plugins names and the default of each kind that is not named. Throws Error(usage) if two are of one
  // kind, Error(plugin) if one is not there or cannot be used.
  Selection select(const std::vector<std::string>& names);

  // Opens the plug-in `name` of kind `kind`. Throws Error(plugin).
  const PluginEntry& open(const std::string& kind, const std::string& name);

  // "auto": opens and probes all backends and gives the one with the highest score. Otherwise the one of this name, or
  // the best of a family ("cpu" = all cpu_*). Throws Error(plugin) with each refusal if there is none.
  const PluginEntry& choose_backend(const std::string& name);

  // Opens everything that has not been refused, so that a listing knows every reason.
  void open_all();

  // In the order found, built-ins first.
  const std::deque<PluginEntry>& entries() const noexcept { return entries_; }

 private:
  void add_builtin(const nsp_plugin_v1& plugin);
  void add_folder(const std::string& folder);
  void add_file(const std::string& path, const std::string& kind, const std::string& name);
  void add(PluginEntry entry);
  PluginEntry* find(const std::string& name);
  PluginEntry& require(const std::string& name, const std::string& kind);
  bool try_open(PluginEntry* entry);
  std::string open_module(PluginEntry* entry) const;
  [[noreturn]] void fail_not_found(const std::string& name, const std::string& kind) const;

  std::vector<std::string> folders_;
  Host host_;
  std::deque<PluginEntry> entries_;  // a deque, so that references stay valid while it grows
};

// The option rows of opened plug-ins, in this order, for the second pass over the command line.
std::vector<OptionRow> option_rows(const std::vector<const PluginEntry*>& plugins);

}  // namespace nsp
