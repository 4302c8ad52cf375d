#include "core/plugin/registry.hpp"

#include <algorithm>
#include <filesystem>

#include "core/config/suggest.hpp"
#include "core/plugin/dynlib.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

using State = PluginEntry::State;

void refuse(PluginEntry* entry, const std::string& reason) {
  entry->state = State::refused;
  entry->reason = reason;
}

// libnsp_<kind>_<name>.so; kinds have no underscore.
bool split_file_name(const std::string& file, std::string* kind, std::string* name) {
  const std::string prefix = "libnsp_", suffix = ".so";
  if (file.size() <= prefix.size() + suffix.size() || file.compare(0, prefix.size(), prefix) != 0 ||
      file.compare(file.size() - suffix.size(), suffix.size(), suffix) != 0) {
    return false;
  }
  const std::string middle = file.substr(prefix.size(), file.size() - prefix.size() - suffix.size());
  const std::size_t bar = middle.find('_');
  if (bar == std::string::npos || bar == 0 || bar + 1 == middle.size()) return false;
  *kind = middle.substr(0, bar);
  *name = middle.substr(bar + 1);
  return true;
}

std::string place_of(const PluginEntry& entry) {
  return entry.path.empty() ? "built in" : entry.path;
}

[[noreturn]] void fail_refused(const PluginEntry& entry) {
  throw Error(ErrorKind::plugin, "The plug-in " + entry.note.name + " (" + place_of(entry) + ") cannot be used. " + entry.reason);
}

bool in_family(const std::string& name, const std::string& family) {
  return name.compare(0, family.size() + 1, family + "_") == 0;
}

}  // namespace

Registry::Registry(const std::vector<const nsp_plugin_v1*>& builtins, std::vector<std::string> folders, Host host)
    : folders_(std::move(folders)), host_(std::move(host)) {
  for (const nsp_plugin_v1* plugin : builtins) add_builtin(*plugin);
  for (const std::string& folder : folders_) add_folder(folder);
}

void Registry::add_builtin(const nsp_plugin_v1& plugin) {
  PluginEntry entry;
  entry.note = note_of(plugin);
  entry.descriptor = &plugin;
  std::string reason = check_name(entry.note, entry.note.kind, entry.note.name);
  if (reason.empty()) reason = check_abi(entry.note, host_);
  if (!reason.empty()) refuse(&entry, reason);
  add(std::move(entry));
}

void Registry::add_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    files.push_back(i->path().filename().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    std::string kind, name;
    if (split_file_name(file, &kind, &name)) add_file((std::filesystem::path(folder) / file).string(), kind, name);
  }
}

void Registry::add_file(const std::string& path, const std::string& kind, const std::string& name) {
  PluginEntry entry;
  entry.path = path;
  const NoteResult result = read_note(path);
  std::string reason;
  if (result.note) {
    entry.note = *result.note;
    reason = check_name(entry.note, kind, name);
    if (reason.empty()) reason = check_abi(entry.note, host_);
    if (reason.empty()) reason = check_cpu(entry.note, host_);
  } else {
    reason = "Its note cannot be read: " + result.reason + ". Build it again, or remove the file.";
  }
  // Whatever the note says: it is by its file name that a user knows it.
  entry.note.kind = kind;
  entry.note.name = name;
  if (!reason.empty()) refuse(&entry, reason);
  add(std::move(entry));
}

void Registry::add(PluginEntry entry) {
  if (const PluginEntry* first = find(entry.note.name)) {
    const std::string its_own = entry.reason.empty() ? "" : " Besides: " + entry.reason;
    refuse(&entry, "Another plug-in has this name and comes first: " + place_of(*first) + ". Remove or rename one of them." + its_own);
  }
  entries_.push_back(std::move(entry));
}

PluginEntry* Registry::find(const std::string& name) {
  for (PluginEntry& entry : entries_) {
    if (entry.note.name == name) return &entry;
  }
  return nullptr;
}

void Registry::fail_not_found(const std::string& name, const std::string& kind) const {
  std::vector<std::string> names, places;
  for (const PluginEntry& entry : entries_) {
    const bool wanted = kind.empty() ? entry.note.kind != "backend" && entry.note.kind != "comm" : entry.note.kind == kind;
    if (wanted && std::find(names.begin(), names.end(), entry.note.name) == names.end()) names.push_back(entry.note.name);
  }
  for (const std::string& folder : folders_) {
    std::error_code error;
    places.push_back(folder + (std::filesystem::is_directory(folder, error) ? "" : " (no such folder)"));
  }
  const std::string hint = did_you_mean(name, names);
  if (kind == "backend" && names.empty())
    throw Error(ErrorKind::plugin, "There is no compute backend. Without one nothing can be computed; looked in " + comma_list(places) +
                                       ". Build one (kernels/), or name its folder with --plugin-path or NSP_PLUGIN_PATH.");
  throw Error(ErrorKind::plugin, "There is no " + (kind.empty() ? "plug-in" : kind + " plug-in") + " '" + name +
                                     "'. Available: " + comma_list(names) + "; looked in " + comma_list(places) + ". " +
                                     (hint.empty() ? "Correct the name, or name its folder with --plugin-path." : hint));
}

PluginEntry& Registry::require(const std::string& name, const std::string& kind) {
  PluginEntry* entry = find(name);
  if (entry == nullptr || (!kind.empty() && entry->note.kind != kind)) fail_not_found(name, kind);
  return *entry;
}

// From a file that its note allows to a probed module; the reason if that fails. Once opened it stays in the process.
std::string Registry::open_module(PluginEntry* entry) const {
  const nsp_plugin_v1* plugin = entry->descriptor;
  if (plugin == nullptr) {
    try {
      plugin = static_cast<const nsp_plugin_v1*>(Dynlib(entry->path).symbol("nsp_plugin"));
    } catch (const Error& e) {
      return std::string("The system cannot load it: ") + e.what() + ". Install what is missing, or build it again.";
    }
  }
  if (std::string reason = check_symbol(entry->note, plugin); !reason.empty()) return reason;
  int64_t score = 1;
  if (plugin->probe != nullptr) {
    char text[512] = "";
    score = plugin->probe(text, sizeof text);
    text[sizeof text - 1] = '\0';
    if (score <= 0) return "It does not run here: " + std::string(text[0] != '\0' ? text : "it gives no reason") + ".";
  }
  if (std::string reason = check_options(*plugin); !reason.empty()) return reason;
  entry->score = score;
  entry->descriptor = plugin;
  return "";
}

bool Registry::try_open(PluginEntry* entry) {
  if (entry->state == State::available) {
    const std::string reason = open_module(entry);
    if (reason.empty()) {
      entry->state = State::loaded;
    } else {
      refuse(entry, reason);
    }
  }
  return entry->state == State::loaded;
}

const PluginEntry& Registry::open(const std::string& kind, const std::string& name) {
  PluginEntry& entry = require(name, kind);
  if (!try_open(&entry)) fail_refused(entry);
  return entry;
}

Selection Registry::select(const std::vector<std::string>& names) {
  Selection chosen;
  struct Kind {
    const char *name, *usual;
    const PluginEntry** slot;
  };
  const Kind kinds[] = {{"sync", "ddp", &chosen.sync},
                        {"parallel", "dp", &chosen.parallel},
                        {"memory", "resident", &chosen.memory},
                        {"optimizer", "adamw", &chosen.optimizer}};
  for (const std::string& name : names) {
    const PluginEntry& entry = require(name, "");
    const std::string& kind = entry.note.kind;
    if (kind == "backend" || kind == "comm") {
      throw Error(ErrorKind::usage,
                  "The plug-in " + name + " is not chosen with --plugins. It is of kind " + kind + ". Write --" + kind + " " + name + ".");
    }
    for (const Kind& k : kinds) {
      if (kind != k.name || *k.slot == &entry) continue;
      if (*k.slot == nullptr) {
        *k.slot = &entry;
        continue;
      }
      const std::string rule = kind == "parallel" ? "This version of nsp uses one parallel plug-in at a time" : "A run has one";
      throw Error(ErrorKind::usage, "The plug-ins " + (*k.slot)->note.name + " and " + name + " are both of kind " + kind + ". " + rule +
                                        ". Remove one of them from --plugins.");
    }
    if (entry.state == State::refused) fail_refused(entry);
  }
  for (const Kind& k : kinds) {
    const std::string name = *k.slot != nullptr ? (*k.slot)->note.name : k.usual;
    *k.slot = &open(k.name, name);
  }
  return chosen;
}

const PluginEntry& Registry::choose_backend(const std::string& name) {
  if (name != "auto" && find(name) != nullptr) return open("backend", name);
  const PluginEntry* best = nullptr;
  std::string refusals;
  bool any = false;
  for (PluginEntry& entry : entries_) {
    if (entry.note.kind != "backend" || (name != "auto" && !in_family(entry.note.name, name))) continue;
    any = true;
    if (try_open(&entry)) {
      if (best == nullptr || entry.score > best->score) best = &entry;
    } else {
      refusals += " " + entry.note.name + " (" + entry.path + "): " + entry.reason;
    }
  }
  if (best != nullptr) return *best;
  if (!any) fail_not_found(name == "auto" ? "any" : name, "backend");
  throw Error(ErrorKind::plugin, "No compute backend can be used." + refusals + " Build a backend for this machine.");
}

void Registry::open_all() {
  for (PluginEntry& entry : entries_) try_open(&entry);
}

std::vector<OptionRow> option_rows(const std::vector<const PluginEntry*>& plugins) {
  std::vector<OptionRow> rows;
  for (const PluginEntry* entry : plugins) {
    const nsp_plugin_v1& plugin = *entry->descriptor;
    for (OptionRow& row : plugin_rows(plugin.name, plugin.options, plugin.option_count)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace nsp
