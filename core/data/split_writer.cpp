#include "core/data/split_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "nsp/error.hpp"

namespace nsp {

SplitWriter::SplitWriter(std::string folder, std::string split, const Tokenizer& tokenizer, int64_t shard_tokens)
    : folder_(std::move(folder)), split_(std::move(split)), tokenizer_(tokenizer), shard_tokens_(shard_tokens) {
  NSP_REQUIRE(shard_tokens >= 1, "a shard holds at least one token");
}

void SplitWriter::append(std::span<const int32_t> tokens, int64_t original_bytes) {
  while (!tokens.empty()) {
    if (shard_ && shard_->tokens() == shard_tokens_) close_shard();
    if (!shard_) {
      char number[16];
      std::snprintf(number, sizeof number, "_%05zu", done_.size());
      name_ = split_ + number + ".tokens";
      shard_.emplace((std::filesystem::path(folder_) / name_).string(), tokenizer_.vocabulary(), tokenizer_.id());
    }
    if (std::exchange(document_begins_, false)) shard_->begin_document();
    const auto count = std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(shard_tokens_ - shard_->tokens()));
    shard_->append(tokens.first(count), std::exchange(original_bytes, 0));
    tokens = tokens.subspan(count);
  }
}

void SplitWriter::close_shard() {
  const TokenFileFacts facts = shard_->finish();
  shard_.reset();
  done_.push_back({name_, facts.tokens, facts.documents, facts.checksum});
}

std::vector<PreparedShard> SplitWriter::finish() {
  if (shard_) close_shard();
  return std::move(done_);
}

}  // namespace nsp
