#include "core/model/kv_cache.hpp"

namespace nsp {

int64_t KvCache::bytes(const ModelSpec& spec, int64_t context, DType dtype) {
  return spec.layers * 2 * context * spec.kv_heads * spec.head_dim * static_cast<int64_t>(size_of(dtype));
}

KvCache::KvCache(Device& device, const ModelSpec& spec, int64_t context, DType dtype)
    : context_(context),
      kv_heads_(spec.kv_heads),
      head_dim_(spec.head_dim),
      dtype_(dtype),
      memory_(device, bytes(spec, context, dtype), MemoryKind::device, "keys and values") {}

TensorView KvCache::rows(int64_t layer, int part, int64_t lo, int64_t hi) const {
  const int64_t row = kv_heads_ * head_dim_;
  char* base = static_cast<char*>(memory_.data()) + ((2 * layer + part) * context_ + lo) * row * static_cast<int64_t>(size_of(dtype_));
  return TensorView(base, dtype_, {1, hi - lo, kv_heads_, head_dim_});
}

std::pair<TensorView, TensorView> KvCache::append(const Ops& ops, int64_t layer, TensorView k, TensorView v) const {
  const int64_t end = length_ + k.size(1);
  NSP_REQUIRE(k.size(0) == 1 && end <= context_ && k.dtype() == dtype_, "a cache takes one sequence, of its own dtype, up to its context");
  ops.copy(rows(layer, 0, length_, end), k);
  ops.copy(rows(layer, 1, length_, end), v);
  return {rows(layer, 0, 0, end), rows(layer, 1, 0, end)};
}

void KvCache::advance(int64_t tokens) {
  NSP_REQUIRE(length_ + tokens <= context_, "a cache holds no more tokens than its context");
  length_ += tokens;
}

}  // namespace nsp
