// Working memory of one op, owned by the executor: it grows to the high-water mark and is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace nsp::cpu {

class Scratch {
 public:
  // Everything taken before becomes invalid. Called by the executor before each op.
  void reset();
  // Uninitialised, aligned to 64 bytes, valid until reset(). Throws std::bad_alloc.
  void* take(std::size_t bytes);
  float* floats(std::size_t count) { return static_cast<float*>(take(count * sizeof(float))); }
  double* doubles(std::size_t count) { return static_cast<double*>(take(count * sizeof(double))); }

 private:
  struct Free {
    void operator()(void* pointer) const noexcept;
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    std::size_t size = 0, used = 0;
  };
  void add_block(std::size_t bytes);
  std::vector<Block> blocks_;
};

}  // namespace nsp::cpu
