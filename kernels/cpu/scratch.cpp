#include "cpu/scratch.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace nsp::cpu {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallestBlock = std::size_t{1} << 20;
std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

void Scratch::Free::operator()(void* pointer) const noexcept {
  std::free(pointer);
}

void Scratch::add_block(std::size_t bytes) {
  Block block;
  block.size = std::max(rounded(bytes), kSmallestBlock);
  block.memory.reset(std::aligned_alloc(kAlignment, block.size));
  if (!block.memory) throw std::bad_alloc();
  blocks_.push_back(std::move(block));
}

void* Scratch::take(std::size_t bytes) {
  const std::size_t need = rounded(bytes);
  if (!blocks_.empty() && blocks_.back().used == 0 && blocks_.back().size < need) blocks_.pop_back();  // nobody uses it
  if (blocks_.empty() || blocks_.back().size - blocks_.back().used < need) add_block(need);
  Block& block = blocks_.back();
  void* result = static_cast<char*>(block.memory.get()) + block.used;
  block.used += need;
  return result;
}

void Scratch::reset() {
  if (blocks_.size() > 1) {  // one block that holds all of it, so that the next op of this size allocates nothing
    std::size_t total = 0;
    for (const Block& block : blocks_) total += block.used;
    blocks_.clear();
    add_block(total);
  }
  for (Block& block : blocks_) block.used = 0;
}

}  // namespace nsp::cpu
