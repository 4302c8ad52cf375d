#include "core/version.hpp"

#include "nsp/abi.h"

namespace nsp {

const char* version() noexcept {
  return NSP_VERSION;
}
const char* build_stamp() noexcept {
  return NSP_STAMP;
}

}  // namespace nsp
