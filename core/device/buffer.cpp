#include <utility>

#include "core/device/byte_text.hpp"
#include "nsp/device.hpp"

namespace nsp {
namespace {

[[noreturn]] void fail_allocation(const Device& device, int64_t bytes, MemoryKind kind, const std::string& name) {
  // The backend's text first: asking for the free memory is a call that may replace it.
  const char* text = device.table().last_error(device.handle());
  const std::string reason = text != nullptr && text[0] != '\0' ? text : "no reason given";
  const DeviceInfo info = device.info();
  throw Error(ErrorKind::memory,
              "buffer '" + name + "' of " + byte_text(bytes) + " cannot be allocated in " +
                  (kind == MemoryKind::device ? "the memory of " : "pinned host memory for ") + info.name + " (backend " + device.name() +
                  "). " + byte_text(info.memory_free) + " of " + byte_text(info.memory_total) + " are free there; the backend says: " +
                  reason + ". Lower train.micro_batch, use a smaller model or more ranks, or free the memory that other programs hold.");
}

}  // namespace

Buffer::Buffer(Device& device, int64_t bytes, MemoryKind kind, const std::string& name) : device_(&device), bytes_(bytes), kind_(kind) {
  NSP_REQUIRE(bytes >= 0, "buffer '" + name + "' has no negative size");
  const nsp_status status = device.table().allocate(device.handle(), static_cast<uint64_t>(bytes), static_cast<int32_t>(kind), &data_);
  if (status == NSP_ERR_MEMORY) fail_allocation(device, bytes, kind, name);
  device.check(status, ("allocating buffer '" + name + "'").c_str());
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->table().release(device_->handle(), data_, static_cast<int32_t>(kind_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      kind_(other.kind_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer moved(std::move(other));
  std::swap(device_, moved.device_);
  std::swap(data_, moved.data_);
  std::swap(bytes_, moved.bytes_);
  std::swap(kind_, moved.kind_);
  return *this;
}

}  // namespace nsp
