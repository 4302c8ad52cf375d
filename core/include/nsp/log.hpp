// Where core and plug-ins say things to the user. Rank 0 prints; other ranks are silent unless a line concerns them.
#pragma once

#include <string>

namespace nsp {

class Log {
 public:
  virtual ~Log() = default;
  virtual void info(const std::string& line) = 0;     // printed by rank 0 on standard output
  virtual void warning(const std::string& line) = 0;  // printed by rank 0 on standard error, with "warning: "
};

}  // namespace nsp
