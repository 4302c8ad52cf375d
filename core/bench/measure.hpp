// How long one call of a case takes.
#pragma once

#include "core/bench/op_case.hpp"

namespace nsp::bench {

struct MeasureOptions {
  double seconds = 0.2;     // at least this long, and at least 5 samples
  int64_t working_set = 0;  // bytes that calls of cases without flops rotate over; 0 = one set of tensors
};

struct OpTime {
  bool supported = false;  // false: the backend lacks the op in this dtype, and the rest is 0
  double seconds = 0;      // of one call: the median of the samples
  double fastest = 0;      // of one call: the best sample
  int64_t samples = 0;
  int64_t calls = 0;        // of each sample: as many as take about a millisecond, enqueued together
  int64_t working_set = 0;  // bytes that calls rotated over
};

// Two calls to warm up, then samples. Cases with flops keep one set of tensors.
OpTime measure(Stream& stream, const OpCase& op_case, const MeasureOptions& options);

// Median of at least one number; of an even number of them the mean of the middle two.
double median(std::vector<double> values);

}  // namespace nsp::bench
