// One split of a prepared folder: a token stream cut into shards SPLIT_00000.tokens, SPLIT_00001.tokens, ...
// A document may run from one shard into the next. Errors: as TokenFileWriter. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/prepared_index.hpp"
#include "core/data/token_file_writer.hpp"
#include "core/data/tokenizer.hpp"

namespace nsp {

class SplitWriter {
 public:
  // The tokenizer outlives the writer. A shard holds at most shard_tokens tokens.
  SplitWriter(std::string folder, std::string split, const Tokenizer& tokenizer, int64_t shard_tokens);
  void begin_document() { document_begins_ = true; }  // the next token is its first
  void append(std::span<const int32_t> tokens, int64_t original_bytes);
  std::vector<PreparedShard> finish();  // none if nothing was appended

 private:
  void close_shard();
  std::string folder_, split_;
  const Tokenizer& tokenizer_;
  int64_t shard_tokens_;
  bool document_begins_ = false;
  std::optional<TokenFileWriter> shard_;
  std::string name_;  // of the open shard
  std::vector<PreparedShard> done_;
};

}  // namespace nsp
