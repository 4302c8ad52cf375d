// Memory of activations: sizes are summed by a dry plan, then nothing allocates.
//
// Kept activations live from forward to backward, each at a fixed place of one arena. Scratch is a LIFO stack with names: what
// a module needs within one call. The planner sums the first and records the high-water mark of the second; the workspace
// then serves both from two allocations and refuses what was not planned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/device.hpp"
#include "nsp/types.hpp"

namespace nsp {

// A kept activation's place.
struct Slot {
  int64_t offset = -1;  // bytes
  int64_t bytes = 0;
};

class ActivationPlanner {
 public:
  struct Line {
    std::string name;
    int64_t bytes = 0;
  };
  Slot keep(const std::string& name, DType dtype, int64_t elements);
  // Scratch as the workspace will see it: begin and end nest like the calls of Workspace::scratch.
  void begin_scratch(const std::string& name, DType dtype, int64_t elements);
  void end_scratch();
  int64_t kept_bytes() const noexcept { return kept_; }
  int64_t scratch_bytes() const noexcept { return high_water_; }
  const std::vector<Line>& kept() const noexcept { return lines_; }
  const std::vector<Line>& scratch_at_high_water() const noexcept { return high_water_lines_; }

 private:
  int64_t kept_ = 0, scratch_ = 0, high_water_ = 0;
  std::vector<Line> lines_, stack_, high_water_lines_;
};

class Workspace {
 public:
  Workspace(Device& device, const ActivationPlanner& plan);
  // A kept activation under the sizes of this call (which may be smaller than planned).
  TensorView kept(const Slot& slot, DType dtype, std::initializer_list<int64_t> sizes) const;

  // A scratch tensor that lives until the object dies; objects must die in reverse order of creation.
  class Scratch {
   public:
    Scratch(Workspace& workspace, const char* name, DType dtype, std::initializer_list<int64_t> sizes);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const TensorView& view() const noexcept { return view_; }

   private:
    Workspace& workspace_;
    int64_t before_;
    TensorView view_;
  };

 private:
  Buffer kept_, scratch_;
  int64_t used_ = 0;
};

}  // namespace nsp
