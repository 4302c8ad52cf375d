// Whether a backend has what a model needs, asked before anything is allocated.
#pragma once

#include "core/model/spec.hpp"
#include "nsp/device.hpp"
#include "nsp/optimizer.hpp"

namespace nsp {

// Error(plugin) that names backend, op and dtype if the device lacks an op of the model in this dtype of weights and activations, or
// one of those that the optimizer names. optimizer: of a run that trains, so that backward and updates are asked for too; nullptr where
// nothing is trained.
void check_ops(const Device& device, const ModelSpec& spec, DType dtype, const Optimizer* optimizer);

}  // namespace nsp
