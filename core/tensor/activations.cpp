#include "core/tensor/activations.hpp"

namespace nsp {
namespace {

constexpr int64_t alignment = 256;
int64_t aligned(DType dtype, int64_t elements) {
  return (elements * static_cast<int64_t>(size_of(dtype)) + alignment - 1) / alignment * alignment;
}

}  // namespace

Slot ActivationPlanner::keep(const std::string& name, DType dtype, int64_t elements) {
  const Slot slot{kept_, aligned(dtype, elements)};
  kept_ += slot.bytes;
  lines_.push_back({name, slot.bytes});
  return slot;
}

void ActivationPlanner::begin_scratch(const std::string& name, DType dtype, int64_t elements) {
  stack_.push_back({name, aligned(dtype, elements)});
  scratch_ += stack_.back().bytes;
  if (scratch_ > high_water_) {
    high_water_ = scratch_;
    high_water_lines_ = stack_;
  }
}

void ActivationPlanner::end_scratch() {
  NSP_REQUIRE(!stack_.empty(), "begin_scratch and end_scratch nest");
  scratch_ -= stack_.back().bytes;
  stack_.pop_back();
}

Workspace::Workspace(Device& device, const ActivationPlanner& plan)
    : kept_(device, plan.kept_bytes(), MemoryKind::device, "activations"),
      scratch_(device, plan.scratch_bytes(), MemoryKind::device, "scratch") {}

TensorView Workspace::kept(const Slot& slot, DType dtype, std::initializer_list<int64_t> sizes) const {
  TensorView view(static_cast<char*>(kept_.data()) + slot.offset, dtype, sizes);
  NSP_REQUIRE(slot.offset >= 0 && view.bytes() <= slot.bytes && slot.offset + slot.bytes <= kept_.bytes(),
              "a kept activation fits into its planned slot");
  return view;
}

Workspace::Scratch::Scratch(Workspace& workspace, const char* name, DType dtype, std::initializer_list<int64_t> sizes)
    : workspace_(workspace), before_(workspace.used_) {
  view_ = TensorView(static_cast<char*>(workspace.scratch_.data()) + before_, dtype, sizes);
  workspace.used_ += aligned(dtype, view_.elements());
  NSP_REQUIRE(workspace.used_ <= workspace.scratch_.bytes(), std::string("scratch was planned for: ") + name);
}

Workspace::Scratch::~Scratch() {
  workspace_.used_ = before_;
}

}  // namespace nsp
