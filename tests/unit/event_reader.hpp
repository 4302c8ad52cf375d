// Reads TensorBoard event files back, strictly: framing, checksums, and every field that nsp writes; anything else is an exception.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/crc32c.hpp"

namespace nsp::test {

struct EventSeen {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool start = false;
  std::map<std::string, float> scalars;
};

class EventReader {
 public:
  static std::vector<EventSeen> records(std::string_view file) {
    std::vector<EventSeen> out;
    while (!file.empty()) {
      const std::string_view length = take(file, 8);
      if (number<uint32_t>(take(file, 4)) != masked_crc32c(length)) throw std::runtime_error("checksum of a length");
      const std::string_view event = take(file, number<uint64_t>(length));
      if (number<uint32_t>(take(file, 4)) != masked_crc32c(event)) throw std::runtime_error("checksum of an event");
      out.push_back(read_event(event));
    }
    return out;
  }

 private:
  static std::string_view take(std::string_view& from, uint64_t bytes) {
    if (bytes > from.size()) throw std::runtime_error("cut off");
    const std::string_view out = from.substr(0, bytes);
    from.remove_prefix(bytes);
    return out;
  }
  template <class Number>
  static Number number(std::string_view bytes) {
    Number out;
    if (bytes.size() != sizeof out) throw std::runtime_error("wrong size");
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
  }
  static uint64_t varint(std::string_view& from) {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(from, 1)[0]);
      out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return out;
    }
    throw std::runtime_error("endless number");
  }
  static EventSeen read_event(std::string_view event) {
    EventSeen out;
    while (!event.empty()) {
      switch (varint(event)) {
        case 1 << 3 | 1:
          out.wall_time = number<double>(take(event, 8));
          break;
        case 2 << 3 | 0:
          out.step = static_cast<int64_t>(varint(event));
          break;
        case 3 << 3 | 2:
          out.version = take(event, varint(event));
          break;
        case 5 << 3 | 2:
          read_summary(take(event, varint(event)), out);
          break;
        case 7 << 3 | 2:
          out.start = take(event, varint(event)) == "\x08\x01";
          break;
        default:
          throw std::runtime_error("an unknown field of Event");
      }
    }
    return out;
  }
  static void read_summary(std::string_view summary, EventSeen& out) {
    while (!summary.empty()) {
      if (varint(summary) != (1 << 3 | 2)) throw std::runtime_error("an unknown field of Summary");
      std::string_view value = take(summary, varint(summary));
      std::string tag;
      while (!value.empty()) {
        switch (varint(value)) {
          case 1 << 3 | 2:
            tag = take(value, varint(value));
            break;
          case 2 << 3 | 5:
            out.scalars[tag] = number<float>(take(value, 4));
            break;
          default:
            throw std::runtime_error("an unknown field of Value");
        }
      }
    }
  }
};

}  // namespace nsp::test
