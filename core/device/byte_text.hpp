// Sizes in memory as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

// "512 B", "1.5 KiB", "24.0 GiB": powers of 1024, one decimal. Negative sizes are written with a minus sign.
std::string byte_text(int64_t bytes);

}  // namespace nsp
