// The op table: every entry checks its arguments on the caller's thread and enqueues the kernel with a copy of them.

#include "cpu/device.hpp"
#include "ops/checks.hpp"
#include "ops/kernels.hpp"

namespace nsp::cpu {

namespace {

template <class Args>
nsp_status run_op(nsp_stream* stream, const Args* args, const char* name, void (*kernel)(Context&, const Args&)) {
  nsp_device* device = stream->device;
  try {
    if (args == nullptr || args->size < sizeof(Args))
      throw ArgumentError(std::string(name) + ": the argument struct is smaller than this backend's");
    check(*args);
    if (device->failed) return NSP_ERR_DEVICE;  // the text is that of the op that failed
    device->enqueue([kernel, copy = *args](Context& context) { kernel(context, copy); });
    return NSP_OK;
  } catch (const ArgumentError& e) {
    if (!device->failed) device->set_error(e.what());
    return NSP_ERR_ARGUMENT;
  } catch (const std::exception&) {
    if (!device->failed) device->set_error(std::string(name) + ": no host memory to enqueue it");
    return NSP_ERR_MEMORY;
  }
}

#define NSP_ENTRY(name, tensors)                                               \
  nsp_status name##_entry(nsp_stream* stream, const nsp_##name##_args* args) { \
    return run_op(stream, args, #name, kernels::name);                         \
  }
NSP_OP_LIST(NSP_ENTRY)
#undef NSP_ENTRY

}  // namespace

#define NSP_MEMBER(name, tensors) name##_entry,
const nsp_op_table kOpTable = {sizeof(nsp_op_table), NSP_OP_LIST(NSP_MEMBER)};
#undef NSP_MEMBER

}  // namespace nsp::cpu
