// What this machine can do at best, measured: the yardsticks of a table of ops.
#pragma once

#include <string>

#include "nsp/device.hpp"

namespace nsp::bench {

// The best matmul rate of large squares in this dtype, GFLOP/s (measure_matmul_peak of core/discover, at least three times and for
// as long as five ops are measured); 0 where the backend lacks what that needs.
double matmul_peak(Stream& stream, DType dtype, double seconds);

// What the cores could do without any memory: host_fma_peak with the device's threads; 0 where it computes elsewhere (its memory is
// not the host's, or it has no threads), or the processor multiplies no such numbers. Measured as long as matmul_peak.
double fma_peak(Stream& stream, DType dtype, double seconds);

struct StreamRate {
  double gigabytes = 0;  // a second; 0 = not measured
  std::string by;        // what was the fastest: "host triad", or an op such as "axpy"
  double triad = 0;      // of the host triad alone; 0 = not measured
};

// The best rate at which device memory is read and written in order, over working_set bytes. Candidates: copy, scale, axpy and lerp
// (out = base + w (x - base)) of the backend in fp32; and, where device memory is host memory, a plain triad a[i] = b[i] + s c[i] on
// as many threads (McCalpin, "Memory bandwidth and machine balance in current high performance computers", 1995), so that the
// yardstick is not the backend's own. Counted as STREAM does: reads and writes of the program, not what a cache line costs more.
StreamRate stream_rate(Stream& stream, double seconds, int64_t working_set);

// Bytes that surely do not stay in the last-level cache of this host: twice that cache, at least 256 MiB; at most a quarter of
// memory_free.
int64_t beyond_cache(int64_t memory_free);

}  // namespace nsp::bench
