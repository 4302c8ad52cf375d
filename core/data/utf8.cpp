#include "core/data/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace nsp {
namespace {

// Bytes of the sequence that begins at text[at]; 0 if none does.
std::size_t sequence(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const auto within = [](unsigned b, unsigned low, unsigned high) { return b >= low && b <= high; };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (within(b, 0xC2, 0xDF)) return within(byte(1), 0x80, 0xBF) ? 2 : 0;
  const bool third = within(byte(2), 0x80, 0xBF);
  if (within(b, 0xE0, 0xEF)) return within(byte(1), b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF) && third ? 3 : 0;
  if (!within(b, 0xF0, 0xF4)) return 0;
  return within(byte(1), b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF) && third && within(byte(3), 0x80, 0xBF) ? 4 : 0;
}

}  // namespace

std::size_t first_bad_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    uint64_t eight = 0;
    if (at + 8 <= text.size()) std::memcpy(&eight, text.data() + at, 8);
    if (at + 8 <= text.size() && (eight & 0x8080808080808080u) == 0) {  // most text is ASCII
      at += 8;
      continue;
    }
    const std::size_t bytes = sequence(text, at);
    if (bytes == 0) return at;
    at += bytes;
  }
  return text.npos;
}

}  // namespace nsp
