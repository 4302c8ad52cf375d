#include "cpu/host_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <string>

namespace nsp::cpu {

namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kAlignment = 256;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// The number behind `key` in a file of "key value" lines, or `otherwise`.
uint64_t value_of(const std::string& path, const std::string& key, uint64_t otherwise) {
  std::ifstream file(path);
  std::string name;
  while (file >> name) {
    if (name == key) {
      uint64_t value = 0;
      return file >> value ? value : otherwise;
    }
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return otherwise;
}

// A file that holds one number; "max" and a missing file mean no limit.
uint64_t number_in(const std::string& path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

// Applies the limit of one control group folder.
void apply_group(HostMemoryInfo& info, const std::string& folder, const char* limit_file, const char* usage_file, const char* cache_key) {
  const uint64_t limit = number_in(folder + "/" + limit_file, kNoLimit);
  if (limit == kNoLimit) return;
  const uint64_t usage = number_in(folder + "/" + usage_file, 0);
  const uint64_t cache = std::min(usage, value_of(folder + "/memory.stat", cache_key, 0));  // given back when needed
  const uint64_t used = usage - cache;
  info.total = std::min(info.total, limit);
  info.free = std::min(info.free, limit > used ? limit - used : 0);
}

// Applies the limits of `path` below `root` and of every group above it.
void apply_hierarchy(HostMemoryInfo& info, const std::string& root, std::string path, const char* limit_file, const char* usage_file,
                     const char* cache_key) {
  for (;;) {
    apply_group(info, root + path, limit_file, usage_file, cache_key);
    const auto slash = path.rfind('/');
    if (slash == std::string::npos || path.size() <= 1) break;
    path.resize(slash);
  }
  apply_group(info, root, limit_file, usage_file, cache_key);  // inside a container the path may be the host's
}

}  // namespace

HostMemory::~HostMemory() {
  for (const auto& [pointer, block] : blocks_) free_block(block);
}

void HostMemory::free_block(const Block& block) noexcept {
  if (block.mapped > 0) {
    munmap(block.base, block.mapped);
  } else {
    std::free(block.base);
  }
}

void* HostMemory::allocate(uint64_t bytes) {
  if (bytes > kNoLimit / 2) return nullptr;
  Block block{nullptr, 0};
  void* pointer = nullptr;
  if (bytes >= kHugePage) {
    block.mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
    block.base = mmap(nullptr, block.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block.base == MAP_FAILED) return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(block.base);
    pointer = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
    madvise(pointer, block.mapped - kHugePage, MADV_HUGEPAGE);  // a wish: without huge pages it works, more slowly
  } else {
    block.base = std::aligned_alloc(kAlignment, std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
    pointer = block.base;
  }
  if (pointer == nullptr) return nullptr;
  try {
    std::lock_guard lock(mutex_);
    blocks_.emplace(pointer, block);
  } catch (const std::bad_alloc&) {
    free_block(block);
    return nullptr;
  }
  return pointer;
}

bool HostMemory::release(void* pointer) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end()) return false;
  free_block(found->second);
  blocks_.erase(found);
  return true;
}

HostMemoryInfo host_memory_info() {
  HostMemoryInfo info;
  info.total = value_of("/proc/meminfo", "MemTotal:", 0) * 1024;
  info.free = value_of("/proc/meminfo", "MemAvailable:", 0) * 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      apply_hierarchy(info, "/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file");
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      apply_hierarchy(info, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
    }
  }
  return info;
}

}  // namespace nsp::cpu
