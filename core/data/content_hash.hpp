// Hashes as the data part uses them: of a text, and written down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nsp/xxhash64.hpp"

namespace nsp {

inline uint64_t content_hash(std::string_view text, uint64_t seed = 0) {
  return xxhash64(text.data(), text.size(), seed);
}

std::string hash_text(uint64_t hash);  // 16 hexadecimal digits

}  // namespace nsp
