#include "tests/train/counted_blocks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>

namespace nsp::test {
namespace {

constexpr std::size_t alignment = 64, large = std::size_t{1} << 14;

// Without an allocation of its own.
struct Blocks {
  struct Block {
    void* pointer = nullptr;
    std::size_t bytes = 0;
  };
  std::mutex mutex;
  std::array<Block, 4096> held;
  std::size_t end = 0;  // of the places that were ever used
  int64_t now = 0, most = 0;

  void add(void* pointer, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (held[i].pointer != nullptr) continue;
      held[i] = {pointer, bytes};
      end = std::max(end, i + 1);
      now += static_cast<int64_t>(bytes);
      most = std::max(most, now);
      return;
    }
  }
  void remove(void* pointer) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < end; ++i) {
      if (held[i].pointer != pointer) continue;
      now -= static_cast<int64_t>(held[i].bytes);
      held[i] = {};
      return;
    }
  }
};
constinit Blocks blocks;

}  // namespace

int64_t most_block_bytes() {
  const std::lock_guard lock(blocks.mutex);
  return blocks.most;
}

#if defined(NSP_UNDER_ASAN) || defined(__SANITIZE_THREAD__)
bool counts_blocks() {
  return false;
}
#else
bool counts_blocks() {
  return true;
}

extern "C" {
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* pointer);

void* aligned_alloc(std::size_t wanted, std::size_t bytes) noexcept {
  void* pointer = __libc_memalign(wanted, bytes);
  if (pointer != nullptr && wanted == alignment && bytes >= large) blocks.add(pointer, bytes);
  return pointer;
}

int posix_memalign(void** result, std::size_t wanted, std::size_t bytes) noexcept {
  void* pointer = aligned_alloc(wanted, bytes);
  if (pointer == nullptr) return ENOMEM;
  *result = pointer;
  return 0;
}

void free(void* pointer) noexcept {
  if (pointer != nullptr && reinterpret_cast<std::size_t>(pointer) % alignment == 0) blocks.remove(pointer);
  __libc_free(pointer);
}
}
#endif

}  // namespace nsp::test
