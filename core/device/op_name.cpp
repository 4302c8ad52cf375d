#include "core/device/op_name.hpp"

namespace nsp {

std::string op_name(nsp_op op) {
  static constexpr const char* names[] = {
#define NSP_OP_NAME(name, tensors) #name,
      NSP_OP_LIST(NSP_OP_NAME)
#undef NSP_OP_NAME
  };
  return op >= 0 && op < NSP_OP_COUNT ? names[op] : "number " + std::to_string(op);
}

}  // namespace nsp
