#include "cpu/executor.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <thread>

#include "cpu/denormals.hpp"
#include "ops/gemm.hpp"
#include "ops/kokkos_compat.hpp"

namespace nsp::cpu {

Context::Context() = default;
Context::~Context() = default;

namespace {

// Matrix products are cut into tiles that our own threads share, so each call into BLAS must stay on its caller's
// thread: a second pool would compete for the same cores, and its bits would depend on the number of threads. The BLAS is
// whichever the system has, hence by name.
void make_blas_serial() {
  for (const char* name : {"openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (void* symbol = dlsym(RTLD_DEFAULT, name)) reinterpret_cast<void (*)(int)>(symbol)(1);
  }
}

}  // namespace

Executor& Executor::instance(int threads) {
  static std::mutex mutex;
  static Executor* executor = nullptr;  // never destroyed: see the header
  static pid_t owner = 0;
  std::lock_guard lock(mutex);
  if (executor == nullptr) {
    executor = new Executor(threads);
    owner = getpid();
  }
  if (!executor->failure_.empty()) throw std::runtime_error(executor->failure_);
  if (owner != getpid())
    throw std::runtime_error("this process was forked after its parent had opened the device; threads do not survive a fork");
  return *executor;
}

Executor::Executor(int threads) {
  std::thread([this, threads] { run(threads); }).detach();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
}

void Executor::submit(Task task) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Executor::run(int threads) {
  flush_denormals();  // before the pool is made: its threads inherit the setting
  Context context;
  std::string failure;
  try {
    kokkos_initialize(threads);
    for_each_pool_thread(flush_denormals);
    make_blas_serial();
    context.threads = kokkos_concurrency();
    context.gemm = std::make_unique<GemmCache>();
  } catch (const std::exception& e) {
    failure = std::string("the compute threads could not be started: ") + e.what();
  }
  {
    std::lock_guard lock(mutex_);
    failure_ = failure;
    threads_ = context.threads;
    ready_ = true;
  }
  changed_.notify_all();
  if (!failure.empty()) return;
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !queue_.empty(); });
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task(context);
  }
}

}  // namespace nsp::cpu
