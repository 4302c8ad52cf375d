#include "core/discover/peak.hpp"

#include <algorithm>
#include <chrono>

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

void finish(Stream& stream, Event& event) {
  event.record(stream);
  while (!event.wait_for(1000000)) {
  }
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Three matrices of n x n with ordinary numbers in the first two.
class Square {
 public:
  Square(Stream& stream, int64_t n, DType dtype)
      : n_(n), buffer_(stream.device(), 3 * bytes(n, dtype), MemoryKind::device, "matmul peak"), dtype_(dtype) {
    const Ops ops(stream);
    if (dtype == DType::f32) {
      ops.random_fill(TensorView(buffer_.data(), dtype, {2 * n * n}), 1, 0, 0, -0.5f, 1.0f, false);
    } else {
      const Buffer wide(stream.device(), 2 * n * n * 4, MemoryKind::device, "matmul peak");
      const TensorView source(wide.data(), DType::f32, {2 * n * n});
      ops.random_fill(source, 1, 0, 0, -0.5f, 1.0f, false);
      ops.cast(TensorView(buffer_.data(), dtype, {2 * n * n}), source);
      Event filled(stream.device());
      finish(stream, filled);
    }
  }
  void multiply(const Ops& ops) const { ops.matmul(matrix(2), matrix(0), matrix(1), {}); }
  double gigaflops() const { return 2e-9 * static_cast<double>(n_) * static_cast<double>(n_) * static_cast<double>(n_); }

 private:
  static int64_t bytes(int64_t n, DType dtype) { return n * n * static_cast<int64_t>(size_of(dtype)); }
  TensorView matrix(int i) const { return TensorView(static_cast<char*>(buffer_.data()) + i * bytes(n_, dtype_), dtype_, {n_, n_}); }

  int64_t n_;
  Buffer buffer_;
  DType dtype_;
};

}  // namespace

double measure_matmul_peak(Stream& stream, DType dtype) {
  constexpr double kBudget = 0.1;        // seconds for all sizes
  constexpr double kLongEnough = 0.001;  // seconds: below this a launch counts for too much, so a fast device gets larger matrices
  constexpr int64_t kLargest = 3072;     // 3 fp32 matrices of it take 108 MiB
  const Ops ops(stream);
  Event event(stream.device(), "matmul peak");
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int64_t n = 384; n <= kLargest; n *= 2) {
    // Twice the matrices: the way from fp32 to another dtype needs room too, and the rest is not for a measurement to take.
    if (6 * n * n * static_cast<int64_t>(sizeof(float)) > stream.device().info().memory_free) break;
    const Square square(stream, n, dtype);
    square.multiply(ops);  // first calls build kernels and touch memory
    finish(stream, event);
    double fastest = 1e30;
    for (int repeat = 0; repeat < 8; ++repeat) {
      const Clock::time_point start = Clock::now();
      square.multiply(ops);
      finish(stream, event);
      fastest = std::min(fastest, seconds_since(start));
      if (repeat >= 1 && seconds_since(begin) > kBudget * (n == 384 ? 0.4 : 1.0)) break;
    }
    best = std::max(best, square.gigaflops() / fastest);
    if (seconds_since(begin) > kBudget || (n >= 768 && fastest > kLongEnough)) break;
  }
  return best;
}

}  // namespace nsp
