// Errors of nsp: few kinds, and a text that says what, why, and what to do.
//
// Everything in core and in C++ plug-ins reports failure by throwing Error. main prints it once with rank and host
// and ends the whole job with exit_code(kind), so that no rank is left waiting.
#pragma once

#include <stdexcept>
#include <string>

namespace nsp {

enum class ErrorKind {
  input,         // bad data, file or checkpoint          -> exit 4
  usage,         // command line or configuration         -> exit 2
  does_not_fit,  // the plan needs more than there is      -> exit 3
  inconsistent,  // ranks disagree                         -> exit 1
  plugin,        // a module cannot be used                -> exit 2
  device,        // a backend failed                       -> exit 1
  memory,        // an allocation failed                   -> exit 1
  comm,          // communication failed                   -> exit 1 (time-outs: 6, by the watchdog)
  io,            // reading or writing failed              -> exit 1
  diverged,      // too many bad steps in a row            -> exit 5
  internal       // a broken REQUIRE: a bug in nsp         -> exit 1
};

class Error : public std::runtime_error {
 public:
  // text: "WHAT. WHY. WHAT TO DO." without a trailing newline.
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// Exit codes of nsp_app (docs: design of the command line).
namespace exit_code {
inline constexpr int done = 0, error = 1, usage = 2, does_not_fit = 3, bad_data = 4, diverged = 5, timeout = 6, stopped = 75;
}

inline int exit_code_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::input:
      return exit_code::bad_data;
    case ErrorKind::usage:
    case ErrorKind::plugin:
      return exit_code::usage;
    case ErrorKind::does_not_fit:
      return exit_code::does_not_fit;
    case ErrorKind::diverged:
      return exit_code::diverged;
    default:
      return exit_code::error;
  }
}

[[noreturn]] inline void fail_require(const char* condition, const char* file, int line, const std::string& why) {
  throw Error(ErrorKind::internal, std::string("a requirement of nsp does not hold: ") + condition + " (" + file + ":" +
                                       std::to_string(line) + "). " + why +
                                       ". This is a bug in nsp or in a plug-in; please report it with this line.");
}

}  // namespace nsp

// Always on. For a caller's mistake inside nsp; user input is checked with a proper Error instead.
#define NSP_REQUIRE(condition, why)                                             \
  do {                                                                          \
    if (!(condition)) ::nsp::fail_require(#condition, __FILE__, __LINE__, why); \
  } while (false)

// Only in debug builds: for checks in hot places.
#ifdef NDEBUG
#define NSP_ASSERT(condition, why) ((void)0)
#else
#define NSP_ASSERT(condition, why) NSP_REQUIRE(condition, why)
#endif
