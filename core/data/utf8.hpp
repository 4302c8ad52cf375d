// Whether bytes are well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF). Any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace nsp {

// Offset of the first byte that begins no well-formed sequence; npos if all is well.
std::size_t first_bad_utf8(std::string_view text) noexcept;

}  // namespace nsp
