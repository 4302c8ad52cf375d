#include "io/xxhash64.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace nsp {
namespace {

// The sum is defined on little-endian words, and pieces lie little-endian in their files: one loop serves both.
static_assert(std::endian::native == std::endian::little, "checkpoints are written as little-endian memory images");

constexpr uint64_t prime1 = 0x9E3779B185EBCA87ULL, prime2 = 0xC2B2AE3D27D4EB4FULL, prime3 = 0x165667B19E3779F9ULL,
                   prime4 = 0x85EBCA77C2B2AE63ULL, prime5 = 0x27D4EB2F165667C5ULL;
constexpr std::size_t stripe = 32;

template <class Word>
Word load(const unsigned char* p) noexcept {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
uint64_t mix(uint64_t lane, uint64_t input) noexcept {
  return std::rotl(lane + input * prime2, 31) * prime1;
}
uint64_t merge(uint64_t hash, uint64_t lane) noexcept {
  return (hash ^ mix(0, lane)) * prime1 + prime4;
}

}  // namespace

XxHash64::XxHash64() noexcept : lane_{prime1 + prime2, prime2, 0, 0 - prime1} {}

void XxHash64::update(const void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  auto p = static_cast<const unsigned char*>(data);
  total_ += bytes;
  auto consume = [this](const unsigned char* from) {
    for (int i = 0; i < 4; ++i) lane_[i] = mix(lane_[i], load<uint64_t>(from + 8 * i));
  };
  if (rest_bytes_ > 0) {
    const std::size_t take = std::min(bytes, stripe - rest_bytes_);
    std::memcpy(rest_.data() + rest_bytes_, p, take);
    rest_bytes_ += take, p += take, bytes -= take;
    if (rest_bytes_ < stripe) return;
    consume(rest_.data());
    rest_bytes_ = 0;
  }
  for (; bytes >= stripe; p += stripe, bytes -= stripe) consume(p);
  std::memcpy(rest_.data(), p, bytes);
  rest_bytes_ = bytes;
}

uint64_t XxHash64::digest() const noexcept {
  uint64_t hash = prime5;
  if (total_ >= stripe) {
    hash = std::rotl(lane_[0], 1) + std::rotl(lane_[1], 7) + std::rotl(lane_[2], 12) + std::rotl(lane_[3], 18);
    for (uint64_t lane : lane_) hash = merge(hash, lane);
  }
  hash += total_;
  const unsigned char* p = rest_.data();
  const unsigned char* end = p + rest_bytes_;
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ mix(0, load<uint64_t>(p)), 27) * prime1 + prime4;
  if (end - p >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(p) * prime1, 23) * prime2 + prime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ *p * prime5, 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

uint64_t xxhash64(const void* data, std::size_t bytes) noexcept {
  XxHash64 hash;
  hash.update(data, bytes);
  return hash.digest();
}

}  // namespace nsp
