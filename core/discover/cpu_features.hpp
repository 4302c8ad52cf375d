// What this processor can run, in the bits that a module's note asks for (NSP_CPU_* of abi.h).
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

// The bits that this processor has. 0 where it is no x86-64.
uint64_t cpu_features() noexcept;

// Bits for people: "AVX-512 (x86-64-v4), AVX-512 BF16"; a bit that this nsp does not know is "feature bit 40, which this nsp
// does not know". "none" for 0.
std::string cpu_feature_text(uint64_t bits);

}  // namespace nsp
