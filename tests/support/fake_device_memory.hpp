// Memory of a fake device: addresses that only the device's own threads can turn into something readable.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace nsp::test {

// Thread-safe. One reservation of twice the capacity: the lower half is never accessible (these are the device addresses), the
// upper half holds the bytes. A host that touches a device address dies by SIGSEGV. No file and no second mapping is needed,
// and address + capacity is the translation.
class FakeMemory {
 public:
  explicit FakeMemory(uint64_t capacity);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  // nullptr when no gap is large enough. The content is all-ones bytes: NaN as a floating number, so that reading what nobody
  // wrote shows. Released memory is overwritten the same way.
  void* allocate(uint64_t bytes);
  void* allocate_pinned(uint64_t bytes);
  // false: not an address that is allocated now.
  bool release(void* pointer);
  bool release_pinned(void* pointer);

  // Whether [pointer, pointer + bytes) lies within one live allocation; nullopt if the pointer is outside of any device or
  // pinned memory of this device (ordinary host memory, or memory that was released).
  std::optional<bool> contains(const void* pointer, uint64_t bytes) const;
  // Size of the allocation that starts here; 0 if there is none.
  uint64_t size_of(const void* pointer, bool device) const;
  bool is_device_address(const void* pointer) const;
  // What the device's threads use instead of a device address; other pointers come back as they are.
  void* translate(const void* pointer) const;

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const;
  uint64_t allocations() const;

 private:
  using Blocks = std::map<uintptr_t, uint64_t>;  // start -> size
  static const std::pair<const uintptr_t, uint64_t>* find(const Blocks& blocks, uintptr_t address);

  const uint64_t capacity_;
  uintptr_t base_ = 0;
  mutable std::mutex mutex_;
  Blocks device_, pinned_;
};

}  // namespace nsp::test
