// Layer normalisation over the channels. Ba et al., arXiv 1607.06450.
#pragma once

#include <string>

#include "core/model/module.hpp"

namespace nsp {

class LayerNorm {
 public:
  // Declares NAME.weight [C], ones, and NAME.bias [C], zeros.
  LayerNorm(ParamTable& table, const std::string& name, int64_t channels, double eps);
  // y, x [N,C]; mean, rstd [N] are written, for backward. Called again on the same x it gives the same bits: backward
  // recomputes y this way and does not keep it.
  void forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x, TensorView mean, TensorView rstd) const;
  // dx (+)= gradient; dx may be dy.
  void backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x, TensorView mean, TensorView rstd,
                bool accumulate_dx) const;

 private:
  int weight_, bias_;
  float eps_;
};

}  // namespace nsp
