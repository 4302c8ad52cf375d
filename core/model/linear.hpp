// y = x W^T + b, W stored (out, in); b is optional.
#pragma once

#include <string>

#include "core/model/module.hpp"

namespace nsp {

class Linear {
 public:
  // Declares NAME.weight [out,in], normal with this standard deviation, and with `bias` NAME.bias [out], zero.
  Linear(ParamTable& table, const std::string& name, int64_t in, int64_t out, double std, bool bias);
  // y [N,out] from x [N,in].
  void forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x) const;
  // dx [N,in] is overwritten; weight and bias gradients are added to.
  void backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x) const;

 private:
  int weight_, bias_;  // bias_ -1: none
};

}  // namespace nsp
