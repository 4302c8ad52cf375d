// Every sample module leaves a trace when any of its code runs: its static initialiser appends its name to the file that
// NSP_TEST_TRACE names. So a test can prove that the code of a refused module never ran.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void leave_trace(const char* name) {
  const char* path = std::getenv("NSP_TEST_TRACE");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", name);
    std::fclose(file);
  }
}

#define LEAVE_TRACE(name) [[maybe_unused]] static const int trace_left = (leave_trace(name), 0)
