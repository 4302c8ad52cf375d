#include "core/device/byte_text.hpp"

#include <cmath>
#include <cstdio>

namespace nsp {

std::string byte_text(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  // 1023.95 would be printed as "1024.0".
  while (std::fabs(value) >= 1023.95 && unit < 6) {
    value /= 1024.0;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace nsp
