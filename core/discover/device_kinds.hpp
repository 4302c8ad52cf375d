// Kinds of device by name, with what their makers say of them, for plans of machines that are not at hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/types.hpp"

namespace nsp {

struct DeviceKind {
  std::string key;         // "h100", as --devices names it
  std::string name;        // "NVIDIA H100 SXM 80 GB"
  std::string backend;     // module that would serve it: "cuda_sm90"
  double memory_gb = 0;    // of 10^9 bytes, by the data sheet
  double bf16_tflops = 0;  // dense matrix products, fp32 accumulation, at boost clock
  double fp32_tflops = 0;  // dense, true fp32 (no TF32)
  std::string source;      // where the numbers stand
  bool is_cpu() const { return key == "cpu"; }
  int64_t memory_bytes() const { return static_cast<int64_t>(memory_gb * 1e9); }
  double peak_gflops(DType dtype) const { return 1e3 * (dtype == DType::bf16 ? bf16_tflops : fp32_tflops); }
};

// All kinds; the last one is "cpu", a host's processor, whose memory and speed the table does not know (0).
const std::vector<DeviceKind>& device_kinds();

// Error(usage) names the nearest kinds and lists all.
const DeviceKind& find_device_kind(const std::string& key);

}  // namespace nsp
