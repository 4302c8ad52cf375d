// Writes one nsp token shard (layout: token_file.hpp) as a stream. The file appears under its name in finish() only; a writer that is
// destroyed before leaves nothing behind. Memory: one buffer and 8 bytes per document.
// Errors: Error(input) if the place cannot be written, Error(io) if a write fails (a full disk). One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/output_file.hpp"
#include "core/data/token_file.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {

class TokenFileWriter {
 public:
  // Tokens take 2 bytes if the vocabulary allows it, else 4. REQUIRES a tokenizer id of at most 63 characters.
  TokenFileWriter(std::string path, int64_t vocabulary, std::string tokenizer);
  void begin_document();                                                 // the next token is its first
  void append(std::span<const int32_t> tokens, int64_t original_bytes);  // REQUIRES 0 <= token < vocabulary
  int64_t tokens() const noexcept { return facts_.tokens; }
  TokenFileFacts finish();

 private:
  void put(const void* data, std::size_t bytes);
  OutputFile file_;
  TokenFileFacts facts_;
  XxHash64 hash_;
  std::vector<uint64_t> starts_;
};

}  // namespace nsp
