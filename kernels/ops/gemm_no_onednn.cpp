// In place of gemm_onednn.cpp where oneDNN is not installed: choose_library is told so and never picks it.
#include <stdexcept>

#include "ops/gemm.hpp"

namespace nsp::cpu {

struct OnednnKernels::State {};

bool OnednnKernels::available() {
  return false;
}
bool OnednnKernels::has_bf16() {
  return false;
}
bool OnednnKernels::has_bf16_tiles() {
  return false;
}
OnednnKernels::OnednnKernels() = default;
OnednnKernels::~OnednnKernels() = default;
void OnednnKernels::make_room() {}
int OnednnKernels::prepare(const Gemm&) {
  throw std::logic_error("matmul: this module was built without oneDNN");
}
void OnednnKernels::run(int, const void*, const void*, void*) const {
  throw std::logic_error("matmul: this module was built without oneDNN");
}

}  // namespace nsp::cpu
