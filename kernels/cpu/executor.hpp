// The one thread that initialises Kokkos and runs every op of this module, oneDNN and BLAS included.
//
// Kokkos 3.4 can be initialised once per process and refuses any other thread, while a process may open the device
// several times (again after a close; several ranks as threads). So all opened devices share this executor. It is made at
// the first open, with that open's thread count, and runs until the process ends: it is never destroyed, because at exit
// it sleeps without touching anything, whereas joining it would hang a forked child and race with other exit handlers.
// Its one FIFO queue is every stream at once, which keeps the order of each and makes an event of one a point in all.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cpu/scratch.hpp"

namespace nsp::cpu {

class GemmCache;

// What an op may use besides its arguments. Touched by the executor thread alone.
struct Context {
  int threads = 1;
  Scratch scratch;
  std::unique_ptr<GemmCache> gemm;
  Context();
  ~Context();
};

class Executor {
 public:
  // The process's executor; made at the first call with `threads` compute threads. Throws std::runtime_error if Kokkos
  // cannot be initialised, and in a child that was forked after the first call. Any thread.
  static Executor& instance(int threads);
  using Task = std::function<void(Context&)>;
  void submit(Task task);  // any thread; a task must not throw
  int threads() const noexcept { return threads_; }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

 private:
  explicit Executor(int threads);
  void run(int threads);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  bool ready_ = false;
  std::string failure_;  // of the initialisation
  int threads_ = 0;
};

}  // namespace nsp::cpu
