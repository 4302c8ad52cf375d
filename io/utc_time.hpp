// The time of day in files and messages.
#pragma once

#include <string>

namespace nsp {

// "2026-01-31T12:00:00Z"
std::string utc_now();

}  // namespace nsp
