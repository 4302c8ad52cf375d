// Host memory as device memory: allocations, and how much there is for this process.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace nsp::cpu {

// Owns what it hands out; what is still there at its end is returned. Any thread.
class HostMemory {
 public:
  HostMemory() = default;
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  // Not zeroed, aligned to 256 bytes at least; big blocks to huge pages, which they ask for: touching fresh 4 KiB pages
  // costs up to 50 times as much. Null if there is no memory. bytes == 0 gives a valid pointer.
  void* allocate(uint64_t bytes);
  bool release(void* pointer);  // false: not one of ours

 private:
  struct Block {
    void* base;
    uint64_t mapped;  // bytes of the mapping, 0 for a small block
  };
  static void free_block(const Block& block) noexcept;
  std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
};

struct HostMemoryInfo {
  uint64_t total = 0, free = 0;  // bytes
};
// The machine's memory, or what the control groups of this process (v1 and v2) leave of it.
HostMemoryInfo host_memory_info();

}  // namespace nsp::cpu
