#include "core/bench/reference.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/bench/fma_peak.hpp"
#include "core/bench/measure.hpp"
#include "core/discover/peak.hpp"

namespace nsp::bench {
namespace {

using Clock = std::chrono::steady_clock;

bool computes_on_the_host(const DeviceInfo& info) {
  return info.host_addressable && info.threads > 0;
}

// Every thread works on a part of three arrays that it alone has written.
double host_triad(int threads, double seconds, int64_t working_set) {
  const auto n = static_cast<std::size_t>(std::max<int64_t>(working_set / 12 / threads, 1024));
  std::vector<std::vector<float>> parts(static_cast<std::size_t>(threads));
  const auto together = [&](auto work) {
    std::vector<std::jthread> team;
    for (std::vector<float>& part : parts) team.emplace_back([&part, work] { work(part); });
  };
  together([n](std::vector<float>& part) { part.assign(3 * n, 1.0f); });
  double fastest = 1e30;
  const Clock::time_point begin = Clock::now();
  for (int repeat = 0; repeat < 5 || Clock::now() - begin < std::chrono::duration<double>(seconds); ++repeat) {
    const Clock::time_point start = Clock::now();
    together([n](std::vector<float>& part) {
      float* a = part.data();
      const float *b = a + n, *c = b + n;
      for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 0.5f * c[i];
    });
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 12e-9 * static_cast<double>(n) * threads / fastest;
}

// Ops that only stream, each over the whole working set; lerp reads two ranges, base twice.
std::vector<OpCase> streaming_cases(int64_t working_set) {
  using Tensors = std::vector<TensorView>;
  std::vector<OpCase> cases;
  const auto add = [&](nsp_op op, std::vector<Access> ranges, std::function<void(const Ops&, const Tensors&)> call) {
    OpCase& c = cases.emplace_back();
    c.op = op;
    c.what = "reference";
    const int64_t n = std::max<int64_t>(working_set / 4 / static_cast<int64_t>(ranges.size()), 1024);
    for (const Access access : ranges) c.operands.push_back({DType::f32, {n}, access});
    c.call = std::move(call);
  };
  add(NSP_OP_copy, {Access::write, Access::read}, [](const Ops& ops, const Tensors& t) { ops.copy(t[0], t[1]); });
  add(NSP_OP_scale, {Access::update}, [](const Ops& ops, const Tensors& t) { ops.scale(t[0], -1.0f); });
  add(NSP_OP_axpy, {Access::update, Access::read}, [](const Ops& ops, const Tensors& t) { ops.axpy(t[0], t[1], 1e-6f); });
  add(NSP_OP_lerp, {Access::write, Access::read, Access::read},
      [](const Ops& ops, const Tensors& t) { ops.lerp(t[0], t[1], t[2], t[1], 0.5f); });
  return cases;
}

}  // namespace

double matmul_peak(Stream& stream, DType dtype, double seconds) {
  const Device& device = stream.device();
  if (!device.supports(NSP_OP_matmul, dtype) || !device.supports(NSP_OP_random_fill, DType::f32)) return 0;
  if (dtype != DType::f32 && !device.supports(NSP_OP_cast, DType::f32)) return 0;
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int repeat = 0; repeat < 3 || Clock::now() - begin < std::chrono::duration<double>(5 * seconds); ++repeat)
    best = std::max(best, measure_matmul_peak(stream, dtype));
  return best;
}

double fma_peak(Stream& stream, DType dtype, double seconds) {
  const DeviceInfo info = stream.device().info();
  return computes_on_the_host(info) ? host_fma_peak(info.threads, dtype, 5 * seconds) : 0;
}

StreamRate stream_rate(Stream& stream, double seconds, int64_t working_set) {
  StreamRate best;
  const auto offer = [&](double gigabytes, const std::string& by) {
    if (gigabytes > best.gigabytes) best.gigabytes = gigabytes, best.by = by;
  };
  for (const OpCase& c : streaming_cases(working_set))
    if (const OpTime time = measure(stream, c, {seconds, 0}); time.supported) offer(1e-9 * c.bytes() / time.fastest, op_name(c.op));
  // Last: that the working set fits into memory has been found out above.
  const DeviceInfo info = stream.device().info();
  if (computes_on_the_host(info)) best.triad = host_triad(info.threads, seconds, working_set);
  offer(best.triad, "host triad");
  return best;
}

int64_t beyond_cache(int64_t memory_free) {
  const int64_t cache = std::max<int64_t>(std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE)), 0);
  return std::min(std::max<int64_t>(2 * cache, int64_t{256} << 20), memory_free / 4);
}

}  // namespace nsp::bench
