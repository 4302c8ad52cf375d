// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4), and its masked form that TFRecord files use.
// Pure functions: any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace nsp {

uint32_t crc32c(std::string_view bytes) noexcept;

// Rotated right by 15 bits, plus a constant: so a checksum of data that contains checksums stays useful.
uint32_t masked_crc32c(std::string_view bytes) noexcept;

}  // namespace nsp
