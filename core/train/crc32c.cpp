#include "core/train/crc32c.hpp"

#include <array>
#include <bit>

namespace nsp {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0x82F63B78u : rest >> 1;
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<uint32_t, 256> table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) noexcept {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) noexcept {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

}  // namespace nsp
