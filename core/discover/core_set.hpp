// Sets of logical processors, as the operating system numbers them.
#pragma once

#include <bitset>
#include <string>

namespace nsp {

// 1024 is what the C library's cpu_set_t holds; processors beyond are not counted.
using CoreSet = std::bitset<1024>;

// The cores that this process may run on (its affinity mask).
CoreSet allowed_cores();

// "0-3,8,10-11"; "none" if empty.
std::string core_text(const CoreSet& cores);

}  // namespace nsp
