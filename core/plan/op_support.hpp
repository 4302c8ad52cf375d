// Whether a backend has what a model needs, asked before anything is allocated.
#pragma once

#include "core/model/spec.hpp"
#include "nsp/device.hpp"

namespace nsp {

// Error(plugin) that names backend, op and dtype if the device lacks an op of the model in this dtype of weights and activations.
// trains: backward and updates too. The optimizer's own ops are its plug-in's affair.
void check_ops(const Device& device, const ModelSpec& spec, DType dtype, bool trains);

}  // namespace nsp
