// XXH64, the 64-bit checksum of checkpoint pieces (Y. Collet's published specification, seed 0), fed block by block.
// A checksum against damaged disks and torn files, not against people.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nsp {

class XxHash64 {
 public:
  XxHash64() noexcept;
  void update(const void* data, std::size_t bytes) noexcept;
  // The sum of everything fed so far; more may be fed afterwards.
  uint64_t digest() const noexcept;

 private:
  std::array<uint64_t, 4> lane_;
  std::array<unsigned char, 32> rest_{};  // bytes that do not fill a stripe yet
  std::size_t rest_bytes_ = 0;
  uint64_t total_ = 0;
};

uint64_t xxhash64(const void* data, std::size_t bytes) noexcept;

}  // namespace nsp
