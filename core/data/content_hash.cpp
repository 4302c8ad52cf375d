#include "core/data/content_hash.hpp"

#include <cstdio>

namespace nsp {

std::string hash_text(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace nsp
