#include "core/train/text_generator.hpp"

#include <algorithm>

namespace nsp {

int64_t TextGenerator::cache_bytes(const ModelSpec& spec, int64_t context, DType dtype) {
  return KvCache::bytes(spec, context, dtype);
}

TextGenerator::TextGenerator(TrainParts& parts, BatchLoader& loader, Cache cache)
    : parts_(parts),
      loader_(loader),
      cache_(cache == Cache::none ? nullptr
                                  : std::make_unique<KvCache>(parts.device, parts.model.spec(), parts.plan.context, parts.plan.dtype)),
      logits_(parts.device, 4 * parts.model.spec().padded_vocab(), MemoryKind::device, "logits"),
      host_logits_(parts.device, 4 * parts.model.spec().padded_vocab(), MemoryKind::pinned, "logits") {
  NSP_REQUIRE(cache == Cache::none || parts.plan.replica_size == 1, "a cache serves replicas of one rank");
}

// A pass over the whole window; the positions behind the last token are filled, and the causal mask keeps them from mattering.
void TextGenerator::logits_of_window(const std::vector<int32_t>& window, int64_t length, int64_t row) {
  std::vector<int32_t> padded = window;
  padded.resize(static_cast<std::size_t>(parts_.plan.context), 0);
  NSP_REQUIRE(length <= parts_.plan.context, "a window is within the context");
  const LoadedBatch loaded = loader_.load_tokens(padded, 1);
  const Ops ops(parts_.stream);
  const ModelContext context{ops, parts_.workspace, parts_.strategy, parts_.wait, loaded.shape, loaded.batch, false};
  parts_.model.logits(context, parts_.params, row, TensorView(logits_.data(), DType::f32, {1, parts_.model.spec().padded_vocab()}));
}

// A pass over what the cache does not hold yet: the whole window at first and after it slid, else the newest token.
void TextGenerator::logits_by_cache(const std::vector<int32_t>& window) {
  const std::span<const int32_t> fresh = std::span(window).subspan(static_cast<std::size_t>(cache_->length()));
  const LoadedBatch loaded = loader_.load_continuation(fresh, cache_->length());
  const Ops ops(parts_.stream);
  const ModelContext context{ops, parts_.workspace, parts_.strategy, parts_.wait, loaded.shape, loaded.batch, false, cache_.get()};
  parts_.model.logits(context, parts_.params, loaded.shape.rows() - 1,
                      TensorView(logits_.data(), DType::f32, {1, parts_.model.spec().padded_vocab()}));
}

int32_t TextGenerator::next(const std::vector<int32_t>& window, const Sampling& sampling, uint64_t position) {
  const std::vector<int64_t>& cuts = parts_.plan.parallel.token_cuts;
  const auto length = static_cast<int64_t>(window.size());
  const int owner = static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), length - 1) - cuts.begin()) - 1;
  const bool own = owner == parts_.position();
  if (cache_)
    logits_by_cache(window);
  else
    logits_of_window(window, length, own ? length - 1 - cuts[static_cast<std::size_t>(owner)] : 0);
  int32_t token = 0;
  parts_.stream.copy(host_logits_.data(), logits_.data(), 4 * parts_.model.spec().padded_vocab());
  parts_.wait.wait(*record_event(parts_.device, parts_.stream, "logits read"));
  if (own)
    token = next_token({static_cast<const float*>(host_logits_.data()), static_cast<std::size_t>(parts_.model.spec().vocab)}, sampling,
                       position);
  broadcast_now(parts_.groups.replica_host(), parts_.wait, &token, sizeof token, owner);
  return token;
}

std::vector<int32_t> TextGenerator::generate(const std::vector<int32_t>& prompt, int64_t count, const Sampling& sampling,
                                             const std::function<bool(int32_t)>& after_token) {
  const auto context = static_cast<std::size_t>(parts_.plan.context);
  std::vector<int32_t> window(prompt.size() > context ? prompt.end() - static_cast<std::ptrdiff_t>(context) : prompt.begin(), prompt.end());
  NSP_REQUIRE(!window.empty(), "a prompt has at least one token");
  std::vector<int32_t> out;
  if (cache_) cache_->clear();
  for (int64_t i = 0; i < count; ++i) {
    if (window.size() > context || (window.size() == context && context > 1)) {
      window.erase(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(context / 2, 1)));
      if (cache_) cache_->clear();  // every token has another position now
    }
    const int32_t token = next(window, sampling, prompt.size() + static_cast<uint64_t>(i));
    window.push_back(token);
    out.push_back(token);
    if (after_token && !after_token(token)) break;
  }
  return out;
}

}  // namespace nsp
