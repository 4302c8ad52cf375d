#include "core/discover/device_kinds.hpp"

#include "core/config/suggest.hpp"
#include "nsp/error.hpp"

namespace nsp {

// A data sheet's GB is taken as 10^9 bytes. Devices have up to 7% more; driver, context and libraries take about that.
// Where a data sheet gives matrix peaks with sparsity only, they are halved. Devices without bf16 units (sm70, sm75) compute
// bf16 in fp32. The SXM variant where there are several.
const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
      {"h100", "NVIDIA H100 SXM 80 GB", "cuda_sm90", 80, 989, 67, "NVIDIA H100 Tensor Core GPU data sheet"},
      {"h200", "NVIDIA H200 SXM 141 GB", "cuda_sm90", 141, 989, 67, "NVIDIA H200 Tensor Core GPU data sheet"},
      {"b200", "NVIDIA B200 180 GB", "cuda_sm100", 180, 2250, 75, "NVIDIA DGX B200 and HGX B200 data sheets, an eighth of a system"},
      {"a100", "NVIDIA A100 SXM 80 GB", "cuda_sm80", 80, 312, 19.5, "NVIDIA A100 Tensor Core GPU data sheet"},
      {"a100_40g", "NVIDIA A100 40 GB", "cuda_sm80", 40, 312, 19.5, "NVIDIA A100 Tensor Core GPU data sheet"},
      {"a6000", "NVIDIA RTX A6000 48 GB", "cuda_sm86", 48, 154.8, 38.7, "NVIDIA RTX A6000 data sheet; NVIDIA Ampere GA102 whitepaper"},
      {"rtx6000_ada", "NVIDIA RTX 6000 Ada 48 GB", "cuda_sm89", 48, 364.2, 91.1,
       "NVIDIA RTX 6000 Ada Generation data sheet; NVIDIA Ada architecture whitepaper"},
      {"rtx_pro_6000", "NVIDIA RTX PRO 6000 Blackwell 96 GB", "cuda_sm120", 96, 500, 125,
       "NVIDIA RTX PRO 6000 Blackwell data sheet (4000 TOPS of sparse FP4; an eighth of it)"},
      {"l40s", "NVIDIA L40S 48 GB", "cuda_sm89", 48, 362, 91.6, "NVIDIA L40S data sheet"},
      {"l4", "NVIDIA L4 24 GB", "cuda_sm89", 24, 121, 30.3, "NVIDIA L4 data sheet"},
      {"v100", "NVIDIA V100 SXM2 32 GB", "cuda_sm70", 32, 15.7, 15.7, "NVIDIA V100 data sheet"},
      {"v100_16g", "NVIDIA V100 SXM2 16 GB", "cuda_sm70", 16, 15.7, 15.7, "NVIDIA V100 data sheet"},
      {"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", "cuda_sm89", 24, 165.2, 82.6, "NVIDIA Ada architecture whitepaper"},
      {"rtx3090", "NVIDIA GeForce RTX 3090 24 GB", "cuda_sm86", 24, 71, 35.6, "NVIDIA Ampere GA102 whitepaper"},
      {"rtx5090", "NVIDIA GeForce RTX 5090 32 GB", "cuda_sm120", 32, 209.5, 104.8, "NVIDIA RTX Blackwell architecture whitepaper"},
      {"t4", "NVIDIA T4 16 GB", "cuda_sm75", 16, 8.1, 8.1, "NVIDIA T4 data sheet"},
      {"cpu", "processor", "cpu", 0, 0, 0, "the host itself"},
  };
  return kinds;
}

const DeviceKind& find_device_kind(const std::string& key) {
  std::vector<std::string> names;
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.key == key) return kind;
    names.push_back(kind.key);
  }
  const std::string near = did_you_mean(key, names);
  throw Error(ErrorKind::usage, "'" + key + "' is not a kind of device that nsp knows (--devices). Known are " + comma_list(names) + ". " +
                                    (near.empty() ? "" : near + " ") +
                                    "For another device name one like it, and give its memory with --memory.");
}

}  // namespace nsp
