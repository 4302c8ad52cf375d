// Which CPU modules this processor can run, by the file's name alone: a module for another processor must not even be opened,
// since its static initialisers would run.
#pragma once

#include <string>

namespace nsp::test {

inline bool module_runs_here(const std::string& file) {
#if defined(__x86_64__)
  if (file.find("x86_64_v4") != std::string::npos) return __builtin_cpu_supports("x86-64-v4");
  if (file.find("x86_64_v3") != std::string::npos) return __builtin_cpu_supports("x86-64-v3");
  if (file.find("x86_64_v2") != std::string::npos) return __builtin_cpu_supports("x86-64-v2");
  return true;
#else
  return file.find("x86_64") == std::string::npos;
#endif
}

}  // namespace nsp::test
