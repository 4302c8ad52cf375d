// The feed-forward part of a block: matrix, GELU (tanh form), matrix.
#pragma once

#include <string>

#include "core/model/linear.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Mlp {
 public:
  Mlp(ParamTable& table, const std::string& name, const ModelSpec& spec);
  void plan(ActivationPlanner& planner, const std::string& name, const BatchShape& largest);  // what is kept
  void plan_forward(ActivationPlanner& planner, const BatchShape& largest) const;             // scratch
  void plan_backward(ActivationPlanner& planner, const BatchShape& largest) const;
  // y [N,C] from x [N,C], the normalised residual stream.
  void forward(const ModelContext& context, const SegmentViews& segment, TensorView y, TensorView x) const;
  // dx [N,C] is overwritten. GELU's output is computed again: [N,F] a block is worth more than one pass over it.
  void backward(const ModelContext& context, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const;

 private:
  int64_t ffn_;
  Linear fc_, proj_;
  Slot before_gelu_;  // [N,F]
};

}  // namespace nsp
