// How fast this device multiplies matrices: the yardstick of peak_share.
#pragma once

#include "nsp/device.hpp"

namespace nsp {

// The best rate of several square matmuls in this dtype on an otherwise idle stream, in GFLOP/s (2 n^3 operations each); 0 if the
// device has no memory left for them (4 MB; at most 110 MB are used). Takes about 0.1 s on a processor; waits for the device.
// A measured number, different from run to run: it may be printed and logged, but decides nothing unless the plan stores it.
// REQUIRES that the backend has random_fill for fp32, matmul for the dtype, and cast if that is not fp32.
double measure_matmul_peak(Stream& stream, DType dtype);

}  // namespace nsp
