#include "core/data/token_stream.hpp"

#include <algorithm>
#include <utility>

#include "core/data/content_hash.hpp"
#include "nsp/error.hpp"

namespace nsp {

int64_t tokens_of(const std::vector<TokenFile>& files) {
  int64_t tokens = 0;
  for (const TokenFile& file : files) tokens += file.facts().tokens;
  return tokens;
}

int64_t windows_of(const std::vector<TokenFile>& files, int64_t context) {
  return std::max<int64_t>(0, (tokens_of(files) - 1) / context);
}

TokenStream::TokenStream(std::vector<TokenFile> files, int64_t context, int64_t first, int64_t count)
    : files_(std::move(files)), context_(context), first_(first), samples_(count) {
  NSP_REQUIRE(!files_.empty() && context >= 1 && first >= 0 && count >= 0, "a stream has files and windows");
  NSP_REQUIRE(first + count <= windows_of(files_, context), "the windows of a stream lie in its files");
  XxHash64 hash;
  for (const TokenFile& file : files_) {
    begins_.push_back(tokens_);
    tokens_ += file.facts().tokens;
    original_bytes_ += file.facts().original_bytes;
    hash.add(file.identity());
  }
  // A part of the stream is other data than the whole, so that a run does not go on after another part was held out.
  if (first != 0 || count != windows_of(files_, context)) {
    hash.add(static_cast<uint64_t>(first));
    hash.add(static_cast<uint64_t>(count));
  }
  fingerprint_ = hash_text(hash.value());
}

void TokenStream::read(int64_t sample, int64_t limit, int32_t* tokens, int32_t* document_start) const {
  NSP_REQUIRE(sample >= 0 && sample < samples_, "a sample is read from within the source");
  const int64_t begin = (first_ + sample) * context_, end = begin + context_ + 1;  // in the stream
  int32_t current = 0;  // start of the document that the position belongs to, in the window
  int64_t written = 0;  // document_start[0, written) is known
  auto shard = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1);
  for (int64_t at = begin; at < end; ++shard) {
    const TokenFile& file = files_[shard];
    const int64_t from = at - begins_[shard], count = std::min(end - at, file.facts().tokens - from);
    file.read(from, count, limit, tokens + (at - begin));
    if (document_start != nullptr) {
      const auto starts = file.document_starts();
      auto next = std::lower_bound(starts.begin(), starts.end(), static_cast<uint64_t>(from));
      for (; next != starts.end() && static_cast<int64_t>(*next) < from + count; ++next) {
        const int64_t position = at - begin + static_cast<int64_t>(*next) - from;
        if (position >= context_) break;  // the last label may begin a document, it is no input
        std::fill(document_start + written, document_start + position, current);
        current = static_cast<int32_t>(position);
        written = position;
      }
    }
    at += count;
  }
  if (document_start != nullptr) std::fill(document_start + written, document_start + context_, current);
}

}  // namespace nsp
