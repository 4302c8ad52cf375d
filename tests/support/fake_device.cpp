#include "tests/support/fake_device.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/support/fake_device_objects.hpp"

namespace nsp::test {

nsp_status FakeDevice::refuse(nsp_status status, const std::string& text) {
  std::lock_guard lock(mutex);
  last_error = text;
  return status;
}

// The device is lost for good, as a GPU is after an illegal access.
nsp_status FakeDevice::refuse_lost() {
  std::lock_guard lock(mutex);
  last_error = failure;
  return NSP_ERR_DEVICE;
}

void FakeDevice::lose(const std::string& text) {
  std::lock_guard lock(mutex);
  if (failure.empty()) failure = text;
  last_error = failure;
}

bool FakeDevice::lost() {
  std::lock_guard lock(mutex);
  return !failure.empty();
}

namespace {

FakeDevice& device_of(nsp_device* device) {
  return *reinterpret_cast<FakeDevice*>(device);
}
FakeStream& stream_of(nsp_stream* stream) {
  return *reinterpret_cast<FakeStream*>(stream);
}
FakeDeviceEvent& event_of(nsp_event* event) {
  return *reinterpret_cast<FakeDeviceEvent*>(event);
}

[[noreturn]] void fail_hard(const std::string& text) {
  std::fprintf(stderr, "fake device: %s\n", text.c_str());
  std::abort();
}

nsp_status info(nsp_device* opaque, nsp_device_info* out) {
  FakeDevice& device = device_of(opaque);
  const uint64_t size = out->size;
  nsp_device_info answer{};
  answer.size = sizeof answer;
  if (device.real->info(device.real_device, &answer) != NSP_OK) return device.refuse(NSP_ERR_DEVICE, "the real device does not answer");
  const std::string name = "fake device on " + std::string(answer.name, strnlen(answer.name, sizeof answer.name));
  std::snprintf(answer.name, sizeof answer.name, "%s", name.c_str());
  std::snprintf(answer.kind, sizeof answer.kind, "fake");
  answer.host_addressable = 0;
  answer.memory_total = device.memory.capacity();
  answer.memory_free = device.memory.capacity() - device.memory.used();
  std::memcpy(out, &answer, std::min<uint64_t>(size, sizeof answer));
  out->size = size;
  return NSP_OK;
}

int32_t supports(nsp_device* device, int32_t op, int32_t dtype) {
  return device_of(device).real->supports(device_of(device).real_device, op, dtype);
}

nsp_status allocate(nsp_device* opaque, uint64_t bytes, int32_t kind, void** out) {
  FakeDevice& device = device_of(opaque);
  if (device.lost()) return device.refuse_lost();
  if (kind != NSP_MEMORY_DEVICE && kind != NSP_MEMORY_PINNED) return device.refuse(NSP_ERR_ARGUMENT, "unknown kind of memory");
  *out = kind == NSP_MEMORY_DEVICE ? device.memory.allocate(bytes) : device.memory.allocate_pinned(bytes);
  if (*out == nullptr) return device.refuse(NSP_ERR_MEMORY, "no gap of " + std::to_string(bytes) + " bytes in the fake device's memory");
  return NSP_OK;
}

void release(nsp_device* opaque, void* pointer, int32_t kind) {
  FakeDevice& device = device_of(opaque);
  if (pointer == nullptr) return;
  const uint64_t bytes = device.memory.size_of(pointer, kind == NSP_MEMORY_DEVICE);
  {
    std::lock_guard lock(device.mutex);
    for (const FakeStream* stream : device.streams) {
      if (stream->queue.uses(pointer, bytes) && device.failure.empty()) {
        device.failure = "fake device: memory was released while work that uses it was queued";
      }
    }
  }
  const bool known = kind == NSP_MEMORY_DEVICE ? device.memory.release(pointer) : device.memory.release_pinned(pointer);
  if (!known) fail_hard("memory is released that was not allocated, or with another kind");
}

nsp_status stream_create(nsp_device* opaque, nsp_stream** out) {
  FakeDevice& device = device_of(opaque);
  if (device.lost()) return device.refuse_lost();
  nsp_stream* real_stream = nullptr;
  nsp_event* real_event = nullptr;
  if (device.real->stream_create(device.real_device, &real_stream) != NSP_OK) return device.refuse(NSP_ERR_DEVICE, "no real stream");
  if (device.real->event_create(device.real_device, &real_event) != NSP_OK) {
    device.real->stream_destroy(real_stream);
    return device.refuse(NSP_ERR_DEVICE, "no real event");
  }
  std::lock_guard lock(device.mutex);
  device.streams.push_back(new FakeStream(device, real_stream, real_event, device.seed++));
  *out = reinterpret_cast<nsp_stream*>(device.streams.back());
  return NSP_OK;
}

void stream_destroy(nsp_stream* opaque) {
  if (opaque == nullptr) return;
  FakeStream* stream = &stream_of(opaque);
  FakeDevice& device = stream->device;
  nsp_stream* real_stream = stream->real_stream;
  nsp_event* real_event = stream->real_event;
  {
    std::lock_guard lock(device.mutex);
    std::erase(device.streams, stream);
  }
  delete stream;  // waits for what is queued
  device.real->event_destroy(real_event);
  device.real->stream_destroy(real_stream);
}

nsp_status event_create(nsp_device* opaque, nsp_event** out) {
  FakeDevice& device = device_of(opaque);
  ++device.events;
  *out = reinterpret_cast<nsp_event*>(new FakeDeviceEvent{device, {}});
  return NSP_OK;
}

void event_destroy(nsp_event* opaque) {
  if (opaque == nullptr) return;
  --event_of(opaque).device.events;
  delete &event_of(opaque);
}

nsp_status event_record(nsp_stream* opaque, nsp_event* event) {
  FakeStream& stream = stream_of(opaque);
  if (stream.device.lost()) return stream.device.refuse_lost();
  auto point = std::make_shared<FakePoint>();
  event_of(event).event.set(point);
  stream.queue.push([point] { point->reach(); }, {});
  return NSP_OK;
}

nsp_status stream_wait(nsp_stream* opaque, nsp_event* event) {
  FakeStream& stream = stream_of(opaque);
  if (stream.device.lost()) return stream.device.refuse_lost();
  // The record of now: a later one must not hold this stream up, nor let it go early.
  if (auto point = event_of(event).event.newest()) stream.queue.push([point] { point->wait(); }, {});
  return NSP_OK;
}

int32_t event_wait(nsp_event* opaque, int64_t microseconds) {
  FakeDeviceEvent& event = event_of(opaque);
  const auto point = event.event.newest();
  const bool reached = point == nullptr || point->wait_for(std::chrono::microseconds(microseconds));
  if (event.device.lost()) {
    event.device.refuse_lost();
    return -1;
  }
  return reached ? 1 : 0;
}

int32_t event_query(nsp_event* opaque) {
  return event_wait(opaque, 0);
}

// Empty: the device may copy from or to this address. Ordinary host memory is nobody's business but the caller's.
std::string objection(const FakeDevice& device, const void* pointer, uint64_t bytes) {
  const std::optional<bool> inside = device.memory.contains(pointer, bytes);
  if (!inside && device.memory.is_device_address(pointer)) return "lies in device memory that is not allocated (any more)";
  return inside.value_or(true) ? "" : "leaves its allocation";
}

nsp_status copy(nsp_stream* opaque, void* destination, const void* source, uint64_t bytes) {
  FakeStream& stream = stream_of(opaque);
  FakeDevice& device = stream.device;
  if (device.lost()) return device.refuse_lost();
  if (bytes == 0) return NSP_OK;
  for (const auto& [what, pointer] : {std::pair<const char*, const void*>{"destination", destination}, {"source", source}}) {
    const std::string text = objection(device, pointer, bytes);
    if (!text.empty()) return device.refuse(NSP_ERR_ARGUMENT, std::string("fake device: copy: the ") + what + " " + text);
  }
  const auto to = reinterpret_cast<uintptr_t>(destination), from = reinterpret_cast<uintptr_t>(source);
  if (to < from + bytes && from < to + bytes) return device.refuse(NSP_ERR_ARGUMENT, "fake device: copy: source and destination overlap");
  stream.queue.push(
      [&device, destination, source, bytes] {
        if (!device.lost()) std::memcpy(device.memory.translate(destination), device.memory.translate(source), bytes);
      },
      {destination, source});
  return NSP_OK;
}

nsp_status fill(nsp_stream* opaque, void* destination, int32_t byte, uint64_t bytes) {
  FakeStream& stream = stream_of(opaque);
  FakeDevice& device = stream.device;
  if (device.lost()) return device.refuse_lost();
  if (bytes == 0) return NSP_OK;
  const std::string text = objection(device, destination, bytes);
  if (!text.empty()) return device.refuse(NSP_ERR_ARGUMENT, "fake device: fill: the destination " + text);
  stream.queue.push(
      [&device, destination, byte, bytes] {
        if (!device.lost()) std::memset(device.memory.translate(destination), byte, bytes);
      },
      {destination});
  return NSP_OK;
}

void close(nsp_device* opaque) {
  if (opaque == nullptr) return;
  FakeDevice* device = &device_of(opaque);
  if (!device->streams.empty() || device->events != 0 || device->memory.allocations() != 0) {
    fail_hard("closed while " + std::to_string(device->streams.size()) + " streams, " + std::to_string(device->events) + " events and " +
              std::to_string(device->memory.allocations()) + " allocations of it are alive");
  }
  device->real->close(device->real_device);
  delete device;
}

// ---- The table. Its functions open, device_count and last_error get no device, so each backend has functions of its own:
// a slot of this process-wide array, which must therefore be a global.

class Backend;
constexpr int kSlots = 64;
std::mutex slots_mutex;
std::array<Backend*, kSlots> slots{};

class Backend : public FakeBackend {
 public:
  Backend(const nsp_backend* real, uint64_t capacity, unsigned seed);
  ~Backend() override {
    std::lock_guard lock(slots_mutex);
    slots[slot_] = nullptr;
  }
  const nsp_backend* table() const override { return &table_; }

  int32_t device_count() const { return real_->device_count(); }

  nsp_status open(int32_t index, const nsp_device_config* config, nsp_device** out) {
    nsp_device* real_device = nullptr;
    const nsp_status status = real_->open(index, config, &real_device);
    if (status != NSP_OK) {
      open_error_ = real_->last_error(nullptr);
      return status;
    }
    // Devices of one backend get different delays.
    *out = reinterpret_cast<nsp_device*>(new FakeDevice(real_, real_device, capacity_, seed_ + 1000 * opened_++));
    return NSP_OK;
  }

  const char* last_error(nsp_device* opaque) {
    if (opaque == nullptr) return open_error_.c_str();
    // Any thread may ask while another one fails: each keeps a text of its own.
    static thread_local std::string text;
    FakeDevice& device = device_of(opaque);
    std::lock_guard lock(device.mutex);
    text = device.last_error;
    return text.c_str();
  }

 private:
  const nsp_backend* const real_;
  const uint64_t capacity_;
  const unsigned seed_;
  std::atomic<unsigned> opened_{0};
  int slot_ = -1;
  std::string open_error_;
  nsp_op_table ops_;
  nsp_backend table_{};
};

struct SlotFunctions {
  decltype(nsp_backend::device_count) device_count;
  decltype(nsp_backend::open) open;
  decltype(nsp_backend::last_error) last_error;
};

template <std::size_t... S>
constexpr std::array<SlotFunctions, sizeof...(S)> make_slot_functions(std::index_sequence<S...>) {
  return {SlotFunctions{
      [] { return slots[S]->device_count(); },
      [](int32_t index, const nsp_device_config* config, nsp_device** out) { return slots[S]->open(index, config, out); },
      [](nsp_device* device) { return slots[S]->last_error(device); },
  }...};
}
constexpr auto kSlotFunctions = make_slot_functions(std::make_index_sequence<kSlots>());

Backend::Backend(const nsp_backend* real, uint64_t capacity, unsigned seed)
    : real_(real), capacity_(capacity), seed_(seed), ops_(make_fake_ops(*real->ops)) {
  {
    std::lock_guard lock(slots_mutex);
    const auto free = std::find(slots.begin(), slots.end(), nullptr);
    if (free == slots.end()) throw std::runtime_error("too many fake backends at the same time");
    slot_ = static_cast<int>(free - slots.begin());
    *free = this;
  }
  const SlotFunctions& functions = kSlotFunctions[slot_];
  table_ = {sizeof table_,
            real->abi_major,
            real->abi_minor,
            &ops_,
            functions.device_count,
            functions.open,
            close,
            info,
            functions.last_error,
            supports,
            allocate,
            release,
            stream_create,
            stream_destroy,
            event_create,
            event_destroy,
            event_record,
            stream_wait,
            event_query,
            event_wait,
            copy,
            fill,
            nullptr};
}

}  // namespace

std::unique_ptr<FakeBackend> make_fake_backend(const nsp_backend* real, uint64_t capacity_bytes, unsigned seed) {
  return std::make_unique<Backend>(real, capacity_bytes, seed);
}

}  // namespace nsp::test
