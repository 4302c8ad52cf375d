#include "core/data/content_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace nsp {
namespace {

static_assert(std::endian::native == std::endian::little, "token files and their hashes are read as little-endian words");

constexpr uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u, prime4 = 0x85EBCA77C2B2AE63u,
                   prime5 = 0x27D4EB2F165667C5u;

uint64_t round_of(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * prime2, 31) * prime1;
}

template <class Word>
Word load(const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

void add_stripe(std::array<uint64_t, 4>& lanes, const unsigned char* stripe) {
  for (int i = 0; i < 4; ++i) lanes[i] = round_of(lanes[i], load<uint64_t>(stripe + 8 * i));
}

}  // namespace

ContentHash::ContentHash(uint64_t seed) : lanes_{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}, seed_(seed) {}

void ContentHash::add(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const auto* from = static_cast<const unsigned char*>(data);
  const std::size_t filled = total_ % 32;
  total_ += bytes;
  if (filled > 0) {
    const std::size_t taken = std::min<std::size_t>(bytes, 32 - filled);
    std::memcpy(rest_.data() + filled, from, taken);
    from += taken;
    bytes -= taken;
    if (filled + taken < 32) return;
    add_stripe(lanes_, rest_.data());
  }
  for (; bytes >= 32; from += 32, bytes -= 32) add_stripe(lanes_, from);
  if (bytes > 0) std::memcpy(rest_.data(), from, bytes);
}

uint64_t ContentHash::value() const {
  uint64_t hash = seed_ + prime5;
  if (total_ >= 32) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = (hash ^ round_of(0, lane)) * prime1 + prime4;
  }
  hash += total_;
  const unsigned char* from = rest_.data();
  std::size_t left = total_ % 32;
  for (; left >= 8; from += 8, left -= 8) hash = std::rotl(hash ^ round_of(0, load<uint64_t>(from)), 27) * prime1 + prime4;
  for (; left >= 4; from += 4, left -= 4) hash = std::rotl(hash ^ (load<uint32_t>(from) * prime1), 23) * prime2 + prime3;
  for (; left > 0; ++from, --left) hash = std::rotl(hash ^ (*from * prime5), 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

uint64_t content_hash(std::string_view text, uint64_t seed) {
  ContentHash hash(seed);
  hash.add(text.data(), text.size());
  return hash.value();
}

std::string hash_text(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace nsp
