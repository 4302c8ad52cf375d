#include "core/discover/core_set.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace nsp {

CoreSet allowed_cores() {
  CoreSet cores;
  constexpr int kMost = 16384;  // large enough for the kernel's own mask, else the call fails
  const std::size_t size = CPU_ALLOC_SIZE(kMost);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMost), [](cpu_set_t* p) { CPU_FREE(p); });
  if (set != nullptr && sched_getaffinity(0, size, set.get()) == 0) {
    for (std::size_t core = 0; core < cores.size(); ++core) cores[core] = CPU_ISSET_S(core, size, set.get());
  }
  if (cores.none()) {
    const std::size_t n = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, cores.size());
    for (std::size_t core = 0; core < n; ++core) cores[core] = true;
  }
  return cores;
}

std::string core_text(const CoreSet& cores) {
  std::string text;
  for (std::size_t first = 0; first < cores.size(); ++first) {
    if (!cores[first]) continue;
    std::size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1]) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
    first = last;
  }
  return text.empty() ? "none" : text;
}

}  // namespace nsp
