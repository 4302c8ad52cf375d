// Where a value of the configuration came from. The texts are part of RUN/config.ini, and a resumed run reads them back
// to know which values its user gave: so they are written in this one place.
#pragma once

#include <string>

namespace nsp {

inline constexpr const char* kOriginDefault = "default";
inline constexpr const char* kOriginStored = "checkpoint";              // nobody gave it in the run that wrote the checkpoint
inline constexpr const char* kOriginStoredGiven = "checkpoint, given";  // its user gave it there
inline constexpr const char* kOriginCommandLine = "command line";
inline std::string origin_preset(const std::string& preset) {
  return "preset " + preset;
}
inline std::string origin_family(const std::string& family) {
  return "family " + family;
}
inline std::string origin_file(const std::string& path, int line) {
  return "file " + path + " line " + std::to_string(line);
}
inline std::string origin_environment(const std::string& variable) {
  return "environment " + variable;
}

// True for values that a user wrote: files, environment, command line, or those in the run that wrote the checkpoint.
bool origin_is_given(const std::string& origin);

}  // namespace nsp
