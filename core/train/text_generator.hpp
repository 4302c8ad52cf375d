// Continues a prompt, token by token.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/model/generate.hpp"
#include "core/model/kv_cache.hpp"
#include "core/train/batch_loader.hpp"
#include "core/train/parts.hpp"

namespace nsp {

class TextGenerator {
 public:
  enum class Cache { none, keys_and_values };
  // none: every token is a pass over the whole window, on any layout. keys_and_values: the prompt is one pass and every token a
  // pass over itself; REQUIRES replicas of one rank. The tokens are the same, up to rounding of the logits.
  TextGenerator(TrainParts& parts, BatchLoader& loader, Cache cache = Cache::none);
  // Continues a prompt by `count` tokens. Every rank of a replica takes part and gets the same result. The window slides by half a
  // context when it is full; positions then begin anew. after_token may stop the continuation by returning false.
  std::vector<int32_t> generate(const std::vector<int32_t>& prompt, int64_t count, const Sampling& sampling,
                                const std::function<bool(int32_t)>& after_token = {});
  // Device memory of a cache for this model, for the plan; logits are 4 * padded_vocab bytes on the device and pinned.
  static int64_t cache_bytes(const ModelSpec& spec, int64_t context, DType dtype);

 private:
  void logits_of_window(const std::vector<int32_t>& window, int64_t length, int64_t row);
  void logits_by_cache(const std::vector<int32_t>& window);
  int32_t next(const std::vector<int32_t>& window, const Sampling& sampling, uint64_t position);
  TrainParts& parts_;
  BatchLoader& loader_;
  std::unique_ptr<KvCache> cache_;  // null: none
  Buffer logits_, host_logits_;
};

}  // namespace nsp
