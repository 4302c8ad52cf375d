// What this libnsp.so is.
#pragma once

namespace nsp {

const char* version() noexcept;      // "0.1.0"
const char* build_stamp() noexcept;  // what a C++ plug-in must have been built with too

}  // namespace nsp
