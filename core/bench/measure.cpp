#include "core/bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/bench/operand_data.hpp"

namespace nsp::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSample = 1e-3;  // seconds: enough beside the way to the device and back
constexpr std::size_t kFewest = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t bytes_of_sets(const OpCase& op_case, std::size_t sets) {
  int64_t bytes = 0;
  for (const Operand& operand : op_case.operands) bytes += operand.bytes() * (operand.shared ? 1 : static_cast<int64_t>(sets));
  return bytes;
}

}  // namespace

double median(std::vector<double> values) {
  NSP_REQUIRE(!values.empty(), "a median is of something");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

OpTime measure(Stream& stream, const OpCase& op_case, const MeasureOptions& options) {
  OpTime out;
  if (!stream.device().supports(op_case.op, op_case.dtype)) return out;
  out.supported = true;
  const Ops ops(stream);
  const OperandData data(stream, op_case, op_case.flops > 0 ? 0 : options.working_set);
  out.working_set = bytes_of_sets(op_case, data.sets());
  std::size_t next = 0;
  const auto time_of = [&](int64_t calls) {  // seconds a call
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) op_case.call(ops, data.set(next++));
    finish(stream);
    return seconds_since(start) / static_cast<double>(calls);
  };
  time_of(1);  // kernels are built, memory is touched
  const double estimate = std::max(time_of(1), 1e-7);
  out.calls = std::max<int64_t>(1, std::llround(kSample / estimate));
  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  do {
    samples.push_back(time_of(out.calls));
  } while (samples.size() < kFewest || seconds_since(begin) < options.seconds);
  out.seconds = median(samples);
  out.fastest = *std::min_element(samples.begin(), samples.end());
  out.samples = static_cast<int64_t>(samples.size());
  return out;
}

}  // namespace nsp::bench
