// Everything that differs between Kokkos 3.4 and 5.x, and the three ways in which the kernels run in parallel.
// Executor thread only.
#pragma once

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cstdint>
#include <exception>

#include "cpu/executor.hpp"

namespace nsp::cpu {

using ExecutionSpace = Kokkos::DefaultHostExecutionSpace;

inline void kokkos_initialize(int threads) {
#if KOKKOS_VERSION >= 30700
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(threads).set_disable_warnings(true);
  Kokkos::initialize(settings);
#else
  Kokkos::InitArguments arguments;
  arguments.num_threads = threads;
  arguments.disable_warnings = true;
  Kokkos::initialize(arguments);
#endif
}

inline int kokkos_concurrency() {
  return ExecutionSpace().concurrency();
}

template <class F>
void for_each_pool_thread(F f) {
#if defined(KOKKOS_ENABLE_OPENMP) && defined(_OPENMP)
#pragma omp parallel num_threads(kokkos_concurrency())
  f();
#else
  f();
#endif
}

// Below this many elementary operations waking the pool costs more than it gives.
constexpr int64_t kSerialOperations = 32768;

// f(i) for every i in [0, items), each on its own; `operations` is the rough cost of one.
template <class F>
void parallel_items(const char* label, int64_t items, int64_t operations, F f) {
  if (items <= 1 || items * operations < kSerialOperations) {
    for (int64_t i = 0; i < items; ++i) f(i);
    return;
  }
  Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<int64_t>>(0, items), f);
}

// f(lo, hi, block) for the cuts of [0, n) into blocks of `grain`. The cuts depend on n and grain alone.
template <class F>
void parallel_blocks(const char* label, int64_t n, int64_t grain, F f) {
  const int64_t blocks = (n + grain - 1) / grain;
  parallel_items(label, blocks, grain, [=](int64_t block) {
    const int64_t lo = block * grain;
    f(lo, lo + grain < n ? lo + grain : n, block);
  });
}

// f(worker) for every worker in [0, workers), each on a thread of its own if there are that many.
template <class F>
void parallel_workers(const char* label, int64_t workers, const F& f) {
  if (workers == 1) return f(0);
  const F* body = &f;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<int64_t>>(0, workers),
                       [=](int64_t worker) { (*body)(worker); });
}

// f(task, scratch) for unequal tasks, handed out one by one; each worker has `scratch_floats` of its own. f may throw:
// the first exception comes out of here.
template <class F>
void parallel_tasks(Context& context, const char* label, int64_t tasks, int64_t scratch_floats, const F& f) {
  if (tasks <= 0) return;
  const int64_t workers = tasks < context.threads ? tasks : context.threads;
  const int64_t per_worker = (scratch_floats + 15) / 16 * 16;
  float* scratch = context.scratch.floats(static_cast<std::size_t>(per_worker * workers));
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  parallel_workers(label, workers, [&](int64_t worker) {
    for (;;) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      try {
        f(task, scratch + worker * per_worker);
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
        return;
      }
    }
  });
  if (failed) std::rethrow_exception(failure);
}

}  // namespace nsp::cpu
