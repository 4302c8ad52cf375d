// XXH64, the checksum of token files, checkpoint pieces and manifests, and the hash that decides which document is held out.
// Source: Yann Collet, "xxHash fast digest algorithm", specification 0.1.1 (XXH64). Not cryptographic: it finds damage, not fraud.
// A value; one thread at a time. Does not fail.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nsp {

class XxHash64 {
 public:
  explicit XxHash64(uint64_t seed = 0) noexcept : lanes_{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}, seed_(seed) {}
  void add(const void* data, std::size_t bytes) noexcept;
  void add(uint64_t number) noexcept { add(&number, sizeof number); }
  uint64_t value() const noexcept;  // of everything added so far; more may follow

 private:
  // The hash is defined on little-endian words, and what is hashed lies little-endian in its files: one loop serves both.
  static_assert(std::endian::native == std::endian::little, "token files and checkpoints are little-endian memory images");
  static constexpr uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u,
                            prime4 = 0x85EBCA77C2B2AE63u, prime5 = 0x27D4EB2F165667C5u;
  static constexpr std::size_t stripe = 32;  // bytes

  template <class Word>
  static Word load(const unsigned char* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
  }
  static uint64_t round_of(uint64_t lane, uint64_t word) noexcept { return std::rotl(lane + word * prime2, 31) * prime1; }
  void add_stripe(const unsigned char* from) noexcept {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = round_of(lanes_[i], load<uint64_t>(from + 8 * i));
  }

  std::array<uint64_t, 4> lanes_;
  std::array<unsigned char, stripe> rest_{};  // the last bytes that do not fill a stripe
  uint64_t seed_;
  uint64_t total_ = 0;  // bytes
};

inline uint64_t xxhash64(const void* data, std::size_t bytes, uint64_t seed = 0) noexcept {
  XxHash64 hash(seed);
  hash.add(data, bytes);
  return hash.value();
}

inline void XxHash64::add(const void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const auto* from = static_cast<const unsigned char*>(data);
  const std::size_t filled = total_ % stripe;
  total_ += bytes;
  if (filled > 0) {
    const std::size_t taken = std::min(bytes, stripe - filled);
    std::memcpy(rest_.data() + filled, from, taken);
    from += taken;
    bytes -= taken;
    if (filled + taken < stripe) return;
    add_stripe(rest_.data());
  }
  for (; bytes >= stripe; from += stripe, bytes -= stripe) add_stripe(from);
  if (bytes > 0) std::memcpy(rest_.data(), from, bytes);
}

inline uint64_t XxHash64::value() const noexcept {
  uint64_t hash = seed_ + prime5;
  if (total_ >= stripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ round_of(0, lane)) * prime1 + prime4;
  }
  hash += total_;
  const unsigned char* from = rest_.data();
  std::size_t left = total_ % stripe;
  for (; left >= 8; from += 8, left -= 8) hash = std::rotl(hash ^ round_of(0, load<uint64_t>(from)), 27) * prime1 + prime4;
  for (; left >= 4; from += 4, left -= 4) hash = std::rotl(hash ^ (load<uint32_t>(from) * prime1), 23) * prime2 + prime3;
  for (; left > 0; ++from, --left) hash = std::rotl(hash ^ (*from * prime5), 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

}  // namespace nsp
