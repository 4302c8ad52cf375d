#include "core/train/event_record.hpp"

#include <bit>
#include <cstring>
#include <string_view>

#include "core/train/crc32c.hpp"

namespace nsp {
namespace {

static_assert(std::endian::native == std::endian::little, "event files hold little-endian numbers");

enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class Number>
std::string raw(Number number) {
  std::string out(sizeof number, '\0');
  std::memcpy(out.data(), &number, sizeof number);
  return out;
}

std::string number(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string key(int field, Wire wire) {
  return number(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

std::string message(int field, std::string_view content) {
  return key(field, bytes).append(number(content.size())).append(content);
}

std::string framed(const std::string& event) {
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  return length + raw(masked_crc32c(length)) + event + raw(masked_crc32c(event));
}

std::string event_at(double wall_time, int64_t step) {
  return key(1, fixed64) + raw(wall_time) + key(2, varint) + number(static_cast<uint64_t>(step));
}

}  // namespace

std::string version_record(double wall_time) {
  return framed(event_at(wall_time, 0) + message(3, "brain.Event:2"));
}

std::string start_record(double wall_time, int64_t step) {
  return framed(event_at(wall_time, step) + message(7, key(1, varint) + number(1)));
}

std::string scalars_record(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars)
    summary += message(1, message(1, scalar.tag) + key(2, fixed32) + raw(static_cast<float>(scalar.value)));
  return framed(event_at(wall_time, step) + message(5, summary));
}

}  // namespace nsp
