// The log of nsp_app: rank 0 prints, the others are silent.
#pragma once

#include "nsp/log.hpp"

namespace nsp {

class ConsoleLog : public Log {
 public:
  explicit ConsoleLog(bool prints) : prints_(prints) {}
  void info(const std::string& line) override;
  void warning(const std::string& line) override;
  bool prints() const noexcept { return prints_; }

 private:
  bool prints_;
};

}  // namespace nsp
