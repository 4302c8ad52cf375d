// Counts what this process holds of large blocks aligned to 64 bytes: so the CPU backend's kernels and oneDNN ask for working
// memory, and nothing else in a training job does. It does so by standing before the C library's functions.
#pragma once

#include <cstdint>

namespace nsp::test {

bool counts_blocks();        // false under a sanitizer, which has such functions of its own
int64_t most_block_bytes();  // at any one time since the process began

}  // namespace nsp::test
