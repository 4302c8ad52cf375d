#include "nsp/device.hpp"

#include <cstring>

namespace nsp {
namespace {

// The backend's own words. Some backends have none to say.
std::string backend_text(const nsp_backend& table, nsp_device* device) {
  const char* text = table.last_error != nullptr ? table.last_error(device) : nullptr;
  return text != nullptr && text[0] != '\0' ? text : "no reason given";
}

const char* status_text(nsp_status status) {
  switch (status) {
    case NSP_OK:
      return "success";
    case NSP_ERR_ARGUMENT:
      return "it does not take these arguments";
    case NSP_ERR_UNSUPPORTED:
      return "it lacks this for the data type";
    case NSP_ERR_MEMORY:
      return "it is out of memory";
    case NSP_ERR_DEVICE:
      return "the device failed";
  }
  return "unknown status";
}

// A fixed field that a module may have filled to the last byte.
template <std::size_t N>
std::string field_text(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

// An op may lie beyond the end of an older module's table: then nothing of it may be read.
bool has(const nsp_op_table& ops, nsp_op op) {
  switch (op) {
#define NSP_OP_CASE(name, tensors) \
  case NSP_OP_##name:              \
    return offsetof(nsp_op_table, name) + sizeof ops.name <= ops.size && ops.name != nullptr;
    NSP_OP_LIST(NSP_OP_CASE)
#undef NSP_OP_CASE
    case NSP_OP_COUNT:
      break;
  }
  return false;
}

}  // namespace

Device::Device(const nsp_backend* table, const std::string& name, int index, int threads) : table_(table), name_(name) {
  NSP_REQUIRE(table_ != nullptr && table_->ops != nullptr, "a backend has a table");
  NSP_REQUIRE(threads >= 1, "a device gets at least one thread");
  if (table_->abi_major != NSP_ABI_MAJOR || table_->size < offsetof(nsp_backend, native_handle)) {
    throw Error(ErrorKind::plugin,
                "backend " + name_ + " cannot be used. Its table is of ABI " + std::to_string(table_->abi_major) + "." +
                    std::to_string(table_->abi_minor) +
                    " and this nsp speaks " NSP_STR(NSP_ABI_MAJOR) "." NSP_STR(NSP_ABI_MINOR) ". Build the backend with this nsp.");
  }
  const int count = table_->device_count();
  if (index < 0 || index >= count) {
    throw Error(ErrorKind::device, "backend " + name_ + " has no device " + std::to_string(index) + ". It reports " +
                                       std::to_string(count) +
                                       " devices here. Start fewer ranks on this host, or choose another backend with --backend.");
  }
  nsp_device_config config{sizeof(nsp_device_config), threads, 0};
  const nsp_status status = table_->open(index, &config, &device_);
  if (status != NSP_OK) {
    device_ = nullptr;
    throw Error(ErrorKind::device, "device " + std::to_string(index) + " of backend " + name_ + " cannot be opened. " +
                                       status_text(status) + ": " + backend_text(*table_, nullptr) +
                                       ". See nsp_app info, or choose another backend with --backend.");
  }
  try {
    host_addressable_ = info().host_addressable;
  } catch (...) {
    table_->close(device_);
    throw;
  }
}

Device::~Device() {
  if (device_ != nullptr) table_->close(device_);
}

DeviceInfo Device::info() const {
  nsp_device_info raw{};
  raw.size = sizeof raw;
  check(table_->info(device_, &raw), "asking for its properties");
  DeviceInfo info;
  info.name = field_text(raw.name);
  info.kind = field_text(raw.kind);
  info.host_addressable = raw.host_addressable != 0;
  info.threads = raw.threads;
  info.memory_total = static_cast<int64_t>(raw.memory_total);
  info.memory_free = static_cast<int64_t>(raw.memory_free);
  return info;
}

bool Device::supports(nsp_op op, DType dtype) const {
  return has(*table_->ops, op) && table_->supports(device_, op, static_cast<int32_t>(dtype)) != 0;
}

void Device::check(nsp_status status, const char* what) const {
  if (status == NSP_OK) return;
  throw Error(ErrorKind::device, "backend " + name_ + " failed in " + what + ". " + status_text(status) + ": " +
                                     backend_text(*table_, device_) + ". See nsp_app info for the devices of this machine.");
}

}  // namespace nsp
