// Normalisation over the channels: LayerNorm (Ba et al., arXiv 1607.06450) or RMSNorm (Zhang and Sennrich, arXiv 1910.07467).
#pragma once

#include <string>

#include "core/model/module.hpp"
#include "core/model/spec.hpp"

namespace nsp {

class Norm {
 public:
  // Declares the family's norm over the hidden channels. gpt2: PREFIX "ln" SUFFIX with .weight [C], ones, and .bias [C], zeros;
  // llama: PREFIX "norm" SUFFIX with .weight [C], ones.
  Norm(ParamTable& table, const std::string& prefix, const std::string& suffix, const ModelSpec& spec);
  // Numbers a row that forward leaves for backward: 1/deviation, and for LayerNorm the mean. They are fp32.
  int64_t statistics() const noexcept { return bias_ < 0 ? 1 : 2; }
  // y, x [N,C]; statistics [statistics(), N], dense, is written. Called again on the same x it gives the same bits: backward
  // recomputes y this way and does not keep it.
  void forward(const Ops& ops, const SegmentViews& segment, TensorView y, TensorView x, TensorView statistics) const;
  // dx (+)= gradient; dx may be dy.
  void backward(const Ops& ops, const SegmentViews& segment, TensorView dx, TensorView dy, TensorView x, TensorView statistics,
                bool accumulate_dx) const;

 private:
  int weight_, bias_;  // bias_ -1: RMSNorm
  float eps_;
};

}  // namespace nsp
