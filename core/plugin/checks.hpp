// The questions that a module must answer before it is used, each with its own text.
//
// Every function returns "" or why the module is refused: sentences that end the line "the plug-in X cannot be used. ".
#pragma once

#include <functional>
#include <string>

#include "core/plugin/note.hpp"
#include "nsp/abi.h"

namespace nsp {

// What this build of nsp is, to compare modules with.
struct Host {
  uint32_t abi_major = NSP_ABI_MAJOR, abi_minor = NSP_ABI_MINOR;
  std::string stamp = NSP_STAMP_BASE;
  uint64_t cpu_features = 0;                               // NSP_CPU_* bits that this processor has
  std::function<std::string(uint64_t)> cpu_feature_names;  // "AVX-512, ..."; may be empty
};

// Kinds that a module can have, in the order of listings.
const char* const* plugin_kinds();  // ends with nullptr
bool is_plugin_kind(const std::string& kind);

// The file is libnsp_<kind>_<name>.so; the name may be used as a section of options.
std::string check_name(const Note& note, const std::string& file_kind, const std::string& file_name);
// ABI class, version and build stamp; names every one that differs. A comm module may append to the stamp.
std::string check_abi(const Note& note, const Host& host);
std::string check_cpu(const Note& note, const Host& host);
// What the symbol says against what the note says. symbol may be null.
std::string check_symbol(const Note& note, const nsp_plugin_v1* symbol);
// Types, defaults and names of the option rows.
std::string check_options(const nsp_plugin_v1& plugin);

// The note that a built-in would have.
Note note_of(const nsp_plugin_v1& plugin);

}  // namespace nsp
