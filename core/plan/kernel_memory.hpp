// What the CPU backend's kernels allocate beside the tensors that they are given. The backend's interface has no question for it,
// so the plan counts it here from the same shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/discover/topology.hpp"
#include "core/model/module.hpp"
#include "core/model/spec.hpp"
#include "core/plan/plan.hpp"

namespace nsp {

enum class Passes { forward, forward_and_backward };

// An upper bound, in bytes, for the process of one rank with this many compute threads:
// * attention, and rope: exact where there are tasks for every thread (kernels/ops/attention_*.cpp, rope.cpp);
// * sums over rows and over whole vectors: at most 64 rows of partial sums, and one number for 16,384 elements;
// * matrix products: what our own code packs for all and for each thread (kernels/ops/packed_gemm.cpp), or what oneDNN takes for its
//   largest tiles, if that is more. BLAS keeps buffers of its own, which are not counted.
// The kernels keep the most that one op needed. largest_sum: elements of the longest vector that is summed.
// REQUIRES completed sizes.
int64_t kernel_memory(const ModelSpec& spec, const BatchShape& largest, int threads, int64_t largest_sum, Passes passes);

// The most compute threads of a CPU rank at each position of a replica; empty if no rank computes on a processor. Ranks of one position
// may have different threads.
std::vector<int> cpu_threads_by_position(const JobPlan& plan, const Topology& topology);

}  // namespace nsp
