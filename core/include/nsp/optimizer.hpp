// The optimizer (kind "optimizer"): how owned weights change, given summed gradients.
//
// It declares its states before the plan; core owns their memory, checkpoints and reshards them. step() only enqueues ops.
// Thread: main thread. It never sees replicas, ranks or the clip: gradient_scale carries the division by the tokens really
// summed and the clip factor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nsp/device.hpp"
#include "nsp/types.hpp"

namespace nsp {

// A stretch of one tensor inside the range that this rank owns. All views are 1-D fp32 of equal length.
struct OptimizerPiece {
  Range range;  // where it lies in its segment
  Role role = Role::matrix;
  TensorView weight;                   // read and written
  TensorView gradient;                 // sums over tokens; read
  std::span<const TensorView> states;  // in the order of declare(); read and written
};

struct StepScalars {
  double lr = 0.0;
  double gradient_scale = 1.0;  // gradient = gradient_scale * sum
  int64_t count = 1;            // updates made so far, this one included; bad steps do not count
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::vector<StateDecl> declare() const = 0;
  // Enqueues the update of one piece. Every element of the owned ranges is in exactly one piece a step.
  virtual void step(const Ops& ops, const OptimizerPiece& piece, const StepScalars& scalars) = 0;
  // Bytes read and written per parameter by step(), for the plan's and the log's estimate of time.
  virtual double bytes_per_parameter() const = 0;
  // Every op that step() may call, all in fp32. Asked before anything is allocated: a backend without one of them is refused then. One
  // that is not named is missed in the step that calls it.
  virtual std::vector<nsp_op> ops() const { return {}; }
};

}  // namespace nsp
