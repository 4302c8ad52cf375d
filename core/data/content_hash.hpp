// XXH64 over a stream: the checksum of token files and the hash that decides which document is held out.
// Source: Yann Collet, "xxHash fast digest algorithm", specification 0.1.1 (XXH64). Not cryptographic: it finds damage, not fraud.
// A value; one thread at a time. Does not fail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nsp {

class ContentHash {
 public:
  explicit ContentHash(uint64_t seed = 0);
  void add(const void* data, std::size_t bytes);
  void add(uint64_t number) { add(&number, sizeof number); }
  uint64_t value() const;  // of everything added so far; more may follow

 private:
  std::array<uint64_t, 4> lanes_;
  std::array<unsigned char, 32> rest_{};  // the last bytes that do not fill a stripe
  uint64_t seed_;
  uint64_t total_ = 0;  // bytes
};

uint64_t content_hash(std::string_view text, uint64_t seed = 0);
std::string hash_text(uint64_t hash);  // 16 hexadecimal digits

}  // namespace nsp
