#include "tests/support/toy_backend.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <type_traits>

namespace nsp::test {
namespace {

constexpr uint64_t kMemory = 1 << 20;

// The C functions have no other place for what tests look at and set.
std::mutex notes_mutex;
std::string last_op;
std::vector<char> last_arguments;
std::atomic<nsp_status> status_to_return{NSP_OK};
std::atomic<bool> events_fail{false};
std::condition_variable notes_changed;
bool ops_held = false;  // protected by notes_mutex

struct ToyDevice {
  std::mutex mutex;
  std::map<void*, uint64_t> blocks;
  uint64_t used = 0;
};

ToyDevice& device_of(nsp_device* device) {
  return *reinterpret_cast<ToyDevice*>(device);
}

void compute(const nsp_axpy_args& args) {
  for (int64_t i = 0; i < args.y.size[0]; ++i) static_cast<float*>(args.y.data)[i] += args.a * static_cast<const float*>(args.x.data)[i];
}
void compute(const nsp_scale_args& args) {
  for (int64_t i = 0; i < args.x.size[0]; ++i) static_cast<float*>(args.x.data)[i] *= args.a;
}
template <class Args>
void compute(const Args&) {}

template <class Args>
nsp_status run(const char* name, const Args* args) {
  const nsp_status status = status_to_return;
  if (status != NSP_OK) return status;
  {
    std::unique_lock lock(notes_mutex);
    notes_changed.wait(lock, [] { return !ops_held; });
    last_op = name;
    last_arguments.assign(reinterpret_cast<const char*>(args), reinterpret_cast<const char*>(args) + args->size);
  }
  compute(*args);
  return NSP_OK;
}

nsp_op_table make_ops() {
  nsp_op_table ops{};
  ops.size = sizeof ops;
#define NSP_TOY_OP(name, tensors) ops.name = [](nsp_stream*, const nsp_##name##_args* args) { return run(#name, args); };
  NSP_OP_LIST(NSP_TOY_OP)
#undef NSP_TOY_OP
  return ops;
}

nsp_status open(int32_t index, const nsp_device_config*, nsp_device** out) {
  if (index != 0) return NSP_ERR_DEVICE;
  *out = reinterpret_cast<nsp_device*>(new ToyDevice);
  return NSP_OK;
}

nsp_status info(nsp_device* device, nsp_device_info* out) {
  std::snprintf(out->name, sizeof out->name, "toy");
  std::snprintf(out->kind, sizeof out->kind, "cpu");
  out->host_addressable = 1;
  out->threads = 1;
  out->memory_total = kMemory;
  out->memory_free = kMemory - device_of(device).used;
  return NSP_OK;
}

nsp_status allocate(nsp_device* opaque, uint64_t bytes, int32_t, void** out) {
  ToyDevice& device = device_of(opaque);
  std::lock_guard lock(device.mutex);
  if (bytes > kMemory - device.used) return NSP_ERR_MEMORY;
  *out = std::aligned_alloc(256, (bytes / 256 + 1) * 256);
  device.blocks[*out] = bytes;
  device.used += bytes;
  return NSP_OK;
}

void release(nsp_device* opaque, void* pointer, int32_t) {
  ToyDevice& device = device_of(opaque);
  std::lock_guard lock(device.mutex);
  device.used -= device.blocks.at(pointer);
  device.blocks.erase(pointer);
  std::free(pointer);
}

const char* last_error(nsp_device* device) {
  return device == nullptr ? "toy device 1 is broken" : "the toy says no";
}

nsp_backend make_table(const nsp_op_table* ops) {
  nsp_backend t{};
  t.size = sizeof t;
  t.abi_major = NSP_ABI_MAJOR;
  t.abi_minor = NSP_ABI_MINOR;
  t.ops = ops;
  t.device_count = [] { return 2; };
  t.open = open;
  t.close = [](nsp_device* device) { delete &device_of(device); };
  t.info = info;
  t.last_error = last_error;
  t.supports = [](nsp_device*, int32_t op, int32_t dtype) { return dtype == NSP_F32 && op != NSP_OP_rope ? 1 : 0; };
  t.allocate = allocate;
  t.release = release;
  t.stream_create = [](nsp_device* device, nsp_stream** out) { return *out = reinterpret_cast<nsp_stream*>(device), NSP_OK; };
  t.stream_destroy = [](nsp_stream*) {};
  t.event_create = [](nsp_device* device, nsp_event** out) { return *out = reinterpret_cast<nsp_event*>(device), NSP_OK; };
  t.event_destroy = [](nsp_event*) {};
  t.event_record = [](nsp_stream*, nsp_event*) { return NSP_OK; };
  t.stream_wait = [](nsp_stream*, nsp_event*) { return NSP_OK; };
  t.event_query = [](nsp_event*) { return events_fail ? -1 : 1; };
  t.event_wait = [](nsp_event*, int64_t) { return events_fail ? -1 : 1; };
  t.copy = [](nsp_stream*, void* to, const void* from, uint64_t bytes) { return std::memcpy(to, from, bytes), NSP_OK; };
  t.fill = [](nsp_stream*, void* to, int32_t byte, uint64_t bytes) { return std::memset(to, byte, bytes), NSP_OK; };
  return t;
}

}  // namespace

const nsp_backend* toy_backend() {
  static const nsp_op_table ops = make_ops();
  static const nsp_backend table = make_table(&ops);
  return &table;
}

std::string toy_last_op() {
  std::lock_guard lock(notes_mutex);
  return last_op;
}

std::vector<char> toy_last_arguments() {
  std::lock_guard lock(notes_mutex);
  return last_arguments;
}

void toy_set_status(nsp_status status) {
  status_to_return = status;
}

void toy_hold_ops(bool held) {
  {
    std::lock_guard lock(notes_mutex);
    ops_held = held;
  }
  notes_changed.notify_all();
}

void toy_set_event_failure(bool failing) {
  events_fail = failing;
}

}  // namespace nsp::test
