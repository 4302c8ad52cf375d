#include "core/plugin/checks.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <vector>

#include "core/config/core_options.hpp"
#include "nsp/error.hpp"
#include "nsp/options.hpp"

namespace nsp {
namespace {

const char* class_name(uint32_t abi_class) {
  return abi_class == NSP_ABI_C ? "C" : abi_class == NSP_ABI_CXX ? "C++" : "unknown";
}

std::string hex(uint64_t bits) {
  std::ostringstream stream;
  stream << "0x" << std::hex << bits;
  return stream.str();
}

bool is_word(const std::string& text, bool dash) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [dash](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (dash && c == '-');
  });
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

}  // namespace

const char* const* plugin_kinds() {
  static const char* const kinds[] = {"sync", "parallel", "memory", "optimizer", "comm", "backend", nullptr};
  return kinds;
}

bool is_plugin_kind(const std::string& kind) {
  for (const char* const* k = plugin_kinds(); *k != nullptr; ++k) {
    if (kind == *k) return true;
  }
  return false;
}

std::string check_name(const Note& note, const std::string& file_kind, const std::string& file_name) {
  if (note.kind != file_kind || note.name != file_name) {
    return "Its file name says " + file_kind + " " + file_name + " and its note says " + note.kind + " " + note.name +
           ". Name the file libnsp_" + note.kind + "_" + note.name + ".so.";
  }
  if (!is_plugin_kind(note.kind)) return "nsp has no plug-ins of kind " + note.kind + ". Build it for this version of nsp.";
  if (!is_word(note.name, false)) return "Its name has other characters than a-z, 0-9 and _. Give it another name.";
  if (is_core_name(note.name)) {
    return "Its name is a word of nsp's own command line, and its options would be mixed up with nsp's. Give it another name.";
  }
  return "";
}

std::string check_abi(const Note& note, const Host& host) {
  std::vector<std::string> differences;
  const uint32_t wanted = note.kind == "backend" ? NSP_ABI_C : NSP_ABI_CXX;
  if (note.abi_class != wanted) {
    differences.push_back(std::string("its ABI class is ") + class_name(note.abi_class) + " and plug-ins of kind " + note.kind +
                          " are of class " + class_name(wanted));
  }
  // C tables only grow at their ends, so an older or newer minor version will do; C++ interfaces must be the same.
  if (note.abi_major != host.abi_major || (wanted == NSP_ABI_CXX && note.abi_minor != host.abi_minor)) {
    differences.push_back("its ABI version is " + std::to_string(note.abi_major) + "." + std::to_string(note.abi_minor) +
                          " and that of nsp is " + std::to_string(host.abi_major) + "." + std::to_string(host.abi_minor));
  }
  const bool suffixed = note.kind == "comm" && note.stamp.compare(0, host.stamp.size() + 1, host.stamp + ";") == 0;
  if (wanted == NSP_ABI_CXX && note.stamp != host.stamp && !suffixed) {
    differences.push_back("its build stamp is '" + note.stamp + "' and that of nsp is '" + host.stamp + "'");
  }
  if (differences.empty()) return "";
  return "It was built for another nsp: " + joined(differences, "; ") + ". Build it again with the compiler and the headers of this nsp.";
}

std::string check_cpu(const Note& note, const Host& host) {
  const uint64_t missing = note.cpu_features & ~host.cpu_features;
  if (missing == 0) return "";
  const std::string names = host.cpu_feature_names ? host.cpu_feature_names(missing) : "";
  return "It needs what this processor lacks: " + (names.empty() ? "feature bits " + hex(missing) : names) +
         ". Build it for this processor, or use another plug-in.";
}

std::string check_symbol(const Note& note, const nsp_plugin_v1* symbol) {
  const std::string remedy = ". Define the plug-in with the macro of nsp/abi.h alone, and build it again.";
  if (symbol == nullptr) return "It does not export the symbol nsp_plugin" + remedy;
  // Up to probe in the first release; whatever is added later is read only if the size says that it is there.
  constexpr std::size_t first_release = offsetof(nsp_plugin_v1, probe) + sizeof(symbol->probe);
  if (symbol->magic != NSP_PLUGIN_MAGIC || symbol->size < first_release) return "Its symbol nsp_plugin is not a descriptor" + remedy;
  const auto text = [](const char* t) { return t != nullptr ? std::string(t) : std::string("(null)"); };
  std::vector<std::string> differences;
  const auto compare = [&differences](const char* what, const std::string& in_note, const std::string& in_symbol) {
    if (in_note != in_symbol) differences.push_back(std::string(what) + " '" + in_note + "' and '" + in_symbol + "'");
  };
  compare("kind", note.kind, text(symbol->kind));
  compare("name", note.name, text(symbol->name));
  compare("version", note.version, text(symbol->version));
  compare("stamp", note.stamp, text(symbol->stamp));
  compare("class", std::to_string(note.abi_class), std::to_string(symbol->abi_class));
  compare("major", std::to_string(note.abi_major), std::to_string(symbol->abi_major));
  compare("minor", std::to_string(note.abi_minor), std::to_string(symbol->abi_minor));
  compare("CPU features", hex(note.cpu_features), hex(symbol->cpu_features));
  if (!differences.empty()) return "Its note and its symbol nsp_plugin disagree: " + joined(differences, "; ") + remedy;
  if (symbol->create == nullptr || symbol->summary == nullptr || (symbol->abi_class == NSP_ABI_CXX && symbol->destroy == nullptr)) {
    return "Its descriptor lacks create, destroy or summary" + remedy;
  }
  return "";
}

std::string check_options(const nsp_plugin_v1& plugin) {
  if (plugin.option_count > 0 && plugin.options == nullptr) return "It declares options and has none. Correct its rows.";
  std::set<std::string> names;
  for (uint32_t i = 0; i < plugin.option_count; ++i) {
    const nsp_option& row = plugin.options[i];
    if (row.name == nullptr || row.type == nullptr || row.default_value == nullptr) {
      return "Option row " + std::to_string(i + 1) + " lacks its name, type or default. Correct the row.";
    }
    const std::string where = std::string("Its option ") + row.name;
    if (!is_word(row.name, true)) return where + " has a name with other characters than a-z, 0-9, _ and -. Correct the row.";
    if (!names.insert(row.name).second) return where + " is declared twice. Remove one of the rows.";
    try {
      parse::check(row.type, row.default_value);
    } catch (const Error& e) {
      return where + " has a default that is not of its type " + row.type + ". " + e.what();
    }
  }
  return "";
}

Note note_of(const nsp_plugin_v1& plugin) {
  return {plugin.abi_class, plugin.abi_major, plugin.abi_minor, plugin.cpu_features,
          plugin.kind,      plugin.name,      plugin.version,   plugin.stamp};
}

}  // namespace nsp
