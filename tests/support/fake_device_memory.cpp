#include "tests/support/fake_device_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace nsp::test {
namespace {

constexpr uint64_t kAlignment = 256;  // what backend.h promises

uint64_t rounded(uint64_t bytes) {
  return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

}  // namespace

FakeMemory::FakeMemory(uint64_t capacity) : capacity_(whole_pages(capacity)) {
  void* p = mmap(nullptr, 2 * capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  base_ = reinterpret_cast<uintptr_t>(p);
  void* upper = reinterpret_cast<void*>(base_ + capacity_);
  if (mprotect(upper, capacity_, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, 2 * capacity_);
    throw std::bad_alloc();
  }
  // Small pages are slow to touch on some hosts; a refusal changes nothing but the speed.
  (void)madvise(upper, capacity_, MADV_HUGEPAGE);
}

FakeMemory::~FakeMemory() {
  munmap(reinterpret_cast<void*>(base_), 2 * capacity_);
  for (const auto& [start, size] : pinned_) std::free(reinterpret_cast<void*>(start));
}

void* FakeMemory::allocate(uint64_t bytes) {
  if (bytes > capacity_) return nullptr;
  const uint64_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  uintptr_t gap = base_;  // first fit
  for (const auto& [start, length] : device_) {
    if (start - gap >= size) break;
    gap = start + rounded(length);
  }
  if (base_ + capacity_ - gap < size) return nullptr;
  device_[gap] = bytes;
  std::memset(reinterpret_cast<void*>(gap + capacity_), 0xff, size);
  return reinterpret_cast<void*>(gap);
}

void* FakeMemory::allocate_pinned(uint64_t bytes) {
  if (bytes > (uint64_t{1} << 46)) return nullptr;  // more than any address space holds: rounding must not wrap
  void* p = std::aligned_alloc(kAlignment, rounded(bytes));
  if (p == nullptr) return nullptr;
  std::memset(p, 0xff, rounded(bytes));
  std::lock_guard lock(mutex_);
  pinned_[reinterpret_cast<uintptr_t>(p)] = bytes;
  return p;
}

bool FakeMemory::release(void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard lock(mutex_);
  const auto found = device_.find(address);
  if (found == device_.end()) return false;
  std::memset(reinterpret_cast<void*>(address + capacity_), 0xff, rounded(found->second));
  device_.erase(found);
  return true;
}

bool FakeMemory::release_pinned(void* pointer) {
  {
    std::lock_guard lock(mutex_);
    if (pinned_.erase(reinterpret_cast<uintptr_t>(pointer)) == 0) return false;
  }
  std::free(pointer);
  return true;
}

const std::pair<const uintptr_t, uint64_t>* FakeMemory::find(const Blocks& blocks, uintptr_t address) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return nullptr;
  --next;
  return address - next->first < next->second ? &*next : nullptr;
}

std::optional<bool> FakeMemory::contains(const void* pointer, uint64_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard lock(mutex_);
  const auto* block = find(device_, address);
  if (block == nullptr) block = find(pinned_, address);
  if (block == nullptr) return std::nullopt;
  return bytes <= block->second && address - block->first <= block->second - bytes;
}

uint64_t FakeMemory::size_of(const void* pointer, bool device) const {
  std::lock_guard lock(mutex_);
  const Blocks& blocks = device ? device_ : pinned_;
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(pointer));
  return found != blocks.end() ? found->second : 0;
}

bool FakeMemory::is_device_address(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address >= base_ && address < base_ + capacity_;
}

void* FakeMemory::translate(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return reinterpret_cast<void*>(is_device_address(pointer) ? address + capacity_ : address);
}

uint64_t FakeMemory::used() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [start, size] : device_) sum += rounded(size);
  return sum;
}

uint64_t FakeMemory::allocations() const {
  std::lock_guard lock(mutex_);
  return device_.size() + pinned_.size();
}

}  // namespace nsp::test
