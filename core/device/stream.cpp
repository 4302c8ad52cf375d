// Streams and the events that order them.
#include "nsp/device.hpp"

namespace nsp {

Event::Event(Device& device, const std::string& name) : device_(device), name_(name) {
  device_.check(device_.table().event_create(device_.handle(), &event_), "creating an event");
}

Event::~Event() {
  device_.table().event_destroy(event_);
}

void Event::record(Stream& stream) {
  device_.check(device_.table().event_record(stream.handle(), event_), "recording an event");
}

namespace {

bool reached(const Device& device, int32_t answer, const std::string& name) {
  if (answer < 0) {
    // The status is only the carrier: what failed is an op enqueued before the event, and the backend's text says which.
    device.check(NSP_ERR_DEVICE, name.empty() ? "work that an event waits for" : ("work before event '" + name + "'").c_str());
  }
  return answer != 0;
}

}  // namespace

bool Event::query() const {
  return reached(device_, device_.table().event_query(event_), name_);
}

bool Event::wait_for(int64_t microseconds) const {
  return reached(device_, device_.table().event_wait(event_, microseconds), name_);
}

Stream::Stream(Device& device) : device_(device) {
  device_.check(device_.table().stream_create(device_.handle(), &stream_), "creating a stream");
}

Stream::~Stream() {
  device_.table().stream_destroy(stream_);
}

void Stream::wait(const Event& event) {
  device_.check(device_.table().stream_wait(stream_, event.handle()), "letting a stream wait for an event");
}

void Stream::copy(void* destination, const void* source, int64_t bytes) {
  NSP_REQUIRE(bytes >= 0, "a copy has no negative size");
  if (bytes == 0) return;
  NSP_REQUIRE(destination != nullptr && source != nullptr, "a copy has a source and a destination");
  device_.check(device_.table().copy(stream_, destination, source, static_cast<uint64_t>(bytes)), "a copy");
}

void Stream::fill(void* destination, int byte, int64_t bytes) {
  NSP_REQUIRE(bytes >= 0 && byte >= 0 && byte <= 255, "a fill writes a number of equal bytes");
  if (bytes == 0) return;
  NSP_REQUIRE(destination != nullptr, "a fill has a destination");
  device_.check(device_.table().fill(stream_, destination, byte, static_cast<uint64_t>(bytes)), "a fill");
}

}  // namespace nsp
