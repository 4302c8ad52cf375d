// The feed-forward part of a block with a gate, SwiGLU: proj(silu(gate x) * (up x)). Shazeer, arXiv 2002.05202.
// Gate and up are one matrix: first the rows of gate, then those of up.
#pragma once

#include <string>

#include "core/model/linear.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class GatedMlp {
 public:
  GatedMlp(ParamTable& table, const std::string& name, const ModelSpec& spec);
  void plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest);  // what is kept
  void plan_forward(ActivationPlanner& planner, const BatchShape& largest) const;             // scratch
  void plan_backward(ActivationPlanner& planner, const BatchShape& largest) const;
  // y [N,C] from x [N,C], the normalised residual stream.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const;
  // dx [N,C] is overwritten. The gated product is computed again: [N,F] a block is worth more than one pass over it.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const;

 private:
  // The left or right half of the columns of x [N,2F].
  TensorView half(TensorView x, int64_t which) const;

  int64_t ffn_;
  Linear gate_up_, proj_;
  Slot gate_up_slot_;  // [N,2F]
};

}  // namespace nsp
