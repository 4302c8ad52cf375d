// Every op of a fake device, from NSP_OP_LIST alone: copy the arguments, check and translate the tensors, and let the
// stream's thread run the real op and wait for it.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/support/fake_device_objects.hpp"

namespace nsp::test {
namespace {

constexpr const char* kOpNames[] = {
#define NSP_OP_NAME(name, tensors) #name,
    NSP_OP_LIST(NSP_OP_NAME)
#undef NSP_OP_NAME
};

int64_t element_size(int32_t dtype) {
  switch (dtype) {
    case NSP_F32:
    case NSP_I32:
      return 4;
    case NSP_BF16:
      return 2;
    case NSP_F64:
    case NSP_I64:
      return 8;
    case NSP_U8:
      return 1;
    default:
      return 0;
  }
}

// The bytes that a view may touch, relative to its data.
struct Extent {
  int64_t lo = 0, hi = 0;
};

// nullopt: no elements.
std::optional<Extent> extent_of(const nsp_tensor& t) {
  if (t.rank == 0) return std::nullopt;
  int64_t lo = 0, hi = 0;
  for (int d = 0; d < t.rank; ++d) {
    if (t.size[d] == 0) return std::nullopt;
    const int64_t reach = (t.size[d] - 1) * t.stride[d];
    (reach < 0 ? lo : hi) += reach;
  }
  const int64_t size = element_size(t.dtype);
  return Extent{lo * size, (hi + 1) * size};
}

// Empty: the device may use this view.
std::string objection(const FakeDevice& device, const nsp_tensor& t) {
  if (t.rank < 0 || t.rank > NSP_MAX_RANK) return "has rank " + std::to_string(t.rank);
  if (t.rank == 0) return t.data == nullptr ? "" : "has data but no dimensions";
  if (element_size(t.dtype) == 0) return "has the unknown dtype " + std::to_string(t.dtype);
  for (int d = 0; d < t.rank; ++d) {
    if (t.size[d] < 0) return "has a negative size";
  }
  const std::optional<Extent> extent = extent_of(t);
  if (!extent) return "";
  const std::optional<bool> inside = device.memory.contains(t.data, 1);
  if (!inside)
    return device.memory.is_device_address(t.data) ? "lies in device memory that is not allocated (any more)"
                                                   : "lies in host memory that is not pinned";
  const char* first = static_cast<const char*>(t.data) + extent->lo;
  if (!device.memory.contains(first, static_cast<uint64_t>(extent->hi - extent->lo)).value_or(false)) return "leaves its allocation";
  return "";
}

template <nsp_op Op, auto Member, class Args, int Tensors>
nsp_status run_op(nsp_stream* opaque, const Args* args) {
  static_assert(sizeof(Args) >= sizeof(uint64_t) + Tensors * sizeof(nsp_tensor), "the tensors follow the size");
  FakeStream& stream = *reinterpret_cast<FakeStream*>(opaque);
  FakeDevice& device = stream.device;
  if (device.lost()) return device.refuse_lost();
  Args copy{};
  std::memcpy(&copy, args, std::min<uint64_t>(args->size, sizeof copy));
  auto* tensors = reinterpret_cast<nsp_tensor*>(reinterpret_cast<char*>(&copy) + sizeof(uint64_t));
  std::vector<const void*> uses;
  for (int i = 0; i < Tensors; ++i) {
    const std::string text = objection(device, tensors[i]);
    if (!text.empty()) {
      return device.refuse(NSP_ERR_ARGUMENT, std::string("fake device: ") + kOpNames[Op] + ": tensor " + std::to_string(i) + " " + text);
    }
    if (tensors[i].rank > 0) uses.push_back(tensors[i].data);
    tensors[i].data = device.memory.translate(tensors[i].data);
  }
  stream.queue.push(
      [&stream, copy] {
        FakeDevice& d = stream.device;
        if (d.lost()) return;
        nsp_status status = (d.real->ops->*Member)(stream.real_stream, &copy);
        if (status == NSP_OK) status = d.real->event_record(stream.real_stream, stream.real_event);
        int32_t done = status == NSP_OK ? 0 : -1;
        while (done == 0) done = d.real->event_wait(stream.real_event, 1000000);
        if (done < 0)
          d.lose(std::string("fake device: ") + kOpNames[Op] + " failed on the real backend: " + d.real->last_error(d.real_device));
      },
      std::move(uses));
  return NSP_OK;
}

template <class Function>
bool has(const nsp_op_table& table, Function nsp_op_table::*member) {
  const auto end = reinterpret_cast<uintptr_t>(&(table.*member) + 1) - reinterpret_cast<uintptr_t>(&table);
  return end <= table.size && table.*member != nullptr;
}

}  // namespace

nsp_op_table make_fake_ops(const nsp_op_table& real) {
  nsp_op_table ops{};
  ops.size = sizeof ops;
#define NSP_OP_WRAP(name, tensors) \
  if (has(real, &nsp_op_table::name)) ops.name = &run_op<NSP_OP_##name, &nsp_op_table::name, nsp_##name##_args, tensors>;
  NSP_OP_LIST(NSP_OP_WRAP)
#undef NSP_OP_WRAP
  return ops;
}

}  // namespace nsp::test
