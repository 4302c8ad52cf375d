// The table of nsp/backend.h: devices, memory, streams, events, copies. No exception leaves a function of it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <string>

#include "cpu/device.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu {

namespace {

constexpr uint64_t kCopyBlock = uint64_t{1} << 20;  // bytes that one thread copies at a time

// The text of the last failed open.
class OpenError {
 public:
  void set(const std::string& text) {
    std::lock_guard lock(mutex_);
    text_ = text;
  }
  const char* get() {
    std::lock_guard lock(mutex_);
    return text_.c_str();
  }

 private:
  std::mutex mutex_;
  std::string text_;
};
OpenError& open_error() {
  static OpenError error;
  return error;
}

// Runs f and turns what it throws into a status and the device's error text.
template <class F>
nsp_status guarded(nsp_device* device, F f) {
  std::string text;
  nsp_status status = NSP_ERR_DEVICE;
  try {
    if (!device->failed) {
      f();
      return NSP_OK;
    }
    return NSP_ERR_DEVICE;  // the text is that of the op that failed
  } catch (const std::bad_alloc&) {
    status = NSP_ERR_MEMORY;
    text = "no host memory for the bookkeeping of a call";
  } catch (const std::exception& e) {
    text = e.what();
  }
  device->set_error(text);
  return status;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return "CPU";
}

int32_t device_count() {
  return 1;
}

nsp_status open(int32_t index, const nsp_device_config* config, nsp_device** out) {
  if (out == nullptr || config == nullptr || config->size < sizeof(nsp_device_config) || index != 0 || config->threads < 1) {
    open_error().set(index != 0 ? "there is one CPU device, index 0" : "open needs a configuration with at least one thread");
    return NSP_ERR_ARGUMENT;
  }
  try {
    *out = new nsp_device(Executor::instance(config->threads));
    return NSP_OK;
  } catch (const std::exception& e) {
    open_error().set(e.what());
    return NSP_ERR_DEVICE;
  }
}

void close(nsp_device* device) {
  if (device == nullptr) return;
  device->wait_for_all();
  delete device;
}

nsp_status info(nsp_device* device, nsp_device_info* out) {
  if (out == nullptr || out->size < sizeof(nsp_device_info)) {
    device->set_error("info: the structure is too small");
    return NSP_ERR_ARGUMENT;
  }
  return guarded(device, [&] {
    const int threads = device->executor.threads();
    std::snprintf(out->name, sizeof out->name, "%.90s (%d thread%s)", processor_name().c_str(), threads, threads == 1 ? "" : "s");
    std::snprintf(out->kind, sizeof out->kind, "cpu");
    out->host_addressable = 1;
    out->threads = threads;
    const HostMemoryInfo memory = host_memory_info();
    out->memory_total = memory.total;
    out->memory_free = memory.free;
  });
}

const char* last_error(nsp_device* device) {
  try {
    return device == nullptr ? open_error().get() : device->error();
  } catch (const std::exception&) {
    return "no memory for the text of an error";
  }
}

int32_t supports(nsp_device*, int32_t op, int32_t dtype) {
  if (op < 0 || op >= NSP_OP_COUNT) return 0;
  if (op == NSP_OP_copy) return dtype >= NSP_F32 && dtype <= NSP_I64;
  if (op == NSP_OP_cast) return dtype == NSP_F32 || dtype == NSP_BF16;
  if (op == NSP_OP_adamw || op == NSP_OP_sgd) return dtype == NSP_F32;
  return dtype == NSP_F32 || dtype == NSP_BF16;
}

nsp_status allocate(nsp_device* device, uint64_t bytes, int32_t kind, void** out) {
  if (out == nullptr || (kind != NSP_MEMORY_DEVICE && kind != NSP_MEMORY_PINNED)) {
    device->set_error("allocate: kind is device or pinned memory");
    return NSP_ERR_ARGUMENT;
  }
  *out = device->memory.allocate(bytes);
  if (*out != nullptr) return NSP_OK;
  device->set_error("allocate: the system has no " + std::to_string(bytes) + " bytes");
  return NSP_ERR_MEMORY;
}

void release(nsp_device* device, void* pointer, int32_t) {
  if (pointer != nullptr && !device->memory.release(pointer)) device->set_error("release: this device did not allocate that pointer");
}

nsp_status stream_create(nsp_device* device, nsp_stream** out) {
  return guarded(device, [&] { *out = new nsp_stream{device}; });
}

void stream_destroy(nsp_stream* stream) {
  if (stream == nullptr) return;
  stream->device->wait_for_all();
  delete stream;
}

nsp_status event_create(nsp_device* device, nsp_event** out) {
  return guarded(device, [&] { *out = new nsp_event; });
}

void event_destroy(nsp_event* event) {
  delete event;
}

nsp_status event_record(nsp_stream* stream, nsp_event* event) {
  nsp_device* device = stream->device;
  try {
    const uint64_t record = event->state->recorded.fetch_add(1) + 1;
    // Straight into the queue: a record behind a failure must still be reached, as failed.
    device->executor.submit([device, state = event->state, record](Context&) { state->reach(record, device->failed); });
    return NSP_OK;
  } catch (const std::exception& e) {
    device->set_error(e.what());
    return NSP_ERR_MEMORY;
  }
}

// Nothing to do: the record is in the one queue already, ahead of whatever this stream enqueues later.
nsp_status stream_wait(nsp_stream*, nsp_event*) {
  return NSP_OK;
}

int32_t event_query(nsp_event* event) {
  return event->state->query();
}
int32_t event_wait(nsp_event* event, int64_t microseconds) {
  return event->state->wait(std::max<int64_t>(microseconds, 0));
}

nsp_status copy(nsp_stream* stream, void* destination, const void* source, uint64_t bytes) {
  if (bytes == 0) return NSP_OK;
  if (destination == nullptr || source == nullptr) {
    stream->device->set_error("copy: a null pointer");
    return NSP_ERR_ARGUMENT;
  }
  return guarded(stream->device, [=] {
    stream->device->enqueue([=](Context&) {
      parallel_blocks("nsp copy", static_cast<int64_t>(bytes), kCopyBlock, [=](int64_t lo, int64_t hi, int64_t) {
        std::memcpy(static_cast<char*>(destination) + lo, static_cast<const char*>(source) + lo, static_cast<std::size_t>(hi - lo));
      });
    });
  });
}

nsp_status fill(nsp_stream* stream, void* destination, int32_t byte, uint64_t bytes) {
  if (bytes == 0) return NSP_OK;
  if (destination == nullptr) {
    stream->device->set_error("fill: a null pointer");
    return NSP_ERR_ARGUMENT;
  }
  return guarded(stream->device, [=] {
    stream->device->enqueue([=](Context&) {
      parallel_blocks("nsp fill", static_cast<int64_t>(bytes), kCopyBlock, [=](int64_t lo, int64_t hi, int64_t) {
        std::memset(static_cast<char*>(destination) + lo, byte, static_cast<std::size_t>(hi - lo));
      });
    });
  });
}

}  // namespace

const nsp_backend* backend_table() {
  static const nsp_backend table = {
      sizeof(nsp_backend), NSP_ABI_MAJOR, NSP_ABI_MINOR, &kOpTable,  device_count,  open,           close,        info,
      last_error,          supports,      allocate,      release,    stream_create, stream_destroy, event_create, event_destroy,
      event_record,        stream_wait,   event_query,   event_wait, copy,          fill,           nullptr};
  return &table;
}

}  // namespace nsp::cpu
