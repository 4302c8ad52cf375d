// Token files: nsp's own shards (*.tokens) and llm.c's (*.bin), memory-mapped and read-only.
//
// nsp shard, little-endian: a header of 256 bytes, the tokens (2 or 4 bytes each) padded with zeros to a multiple of 8 bytes,
// and for each document that begins here the index of its first token (8 bytes, ascending). A shard may begin in the middle of
// a document that began in the shard before it.
//     0 "nsptoken"   8 version (u32) = 1   12 bytes per token (u32)   16 vocabulary   24 tokens   32 documents   40 bytes of the
//     original text   48 XXH64 of all that follows the header   56 reserved, 0   64 tokenizer id, 64 bytes, zero-filled
//     128 reserved, 0   248 XXH64 of the first 248 bytes            (u64 where nothing is said)
// llm.c shard (github.com/karpathy/llm.c, dev/data/data_common.py): 256 int32 of header, then the tokens. GPT-2: 20240520, version 1,
// tokens, zeros; uint16 tokens. Llama 3: 20240801, version 7; uint32 tokens. It knows neither vocabulary nor documents.
//
// Errors: Error(input) that names the file, what was expected, what was found and the cure. A file that shrinks while it is mapped
// ends the process with SIGBUS: shards are replaced by rename only, never in place.
// Reading is const and may be done by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace nsp {

inline constexpr std::size_t token_header_bytes = 256;

struct TokenFileFacts {
  bool llmc = false;
  int64_t token_bytes = 2;
  int64_t vocabulary = 0;  // token ids are below this; 0 = not known
  std::string tokenizer;   // id; llm.c files do not say: "llmc" for GPT-2's, "llmc-llama3" for Llama 3's
  int64_t tokens = 0;
  int64_t documents = 0;  // that begin in this file
  int64_t original_bytes = 0;
  uint64_t checksum = 0;  // of tokens and document starts; 0 for llm.c files
};

class TokenFile {
 public:
  explicit TokenFile(std::string path);  // checks header and size, not the checksum
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&&) = delete;

  const std::string& path() const noexcept { return path_; }
  const TokenFileFacts& facts() const noexcept { return facts_; }
  // Index of the first token of each document that begins in this file, ascending. Empty for llm.c files.
  std::span<const uint64_t> document_starts() const noexcept;
  // Copies tokens [first, first + count) to `to`; each must be below `vocabulary` (0 = unchecked).
  // REQUIRES the range to lie in the file.
  void read(int64_t first, int64_t count, int64_t vocabulary, int32_t* to) const;
  // Reads the whole file: checksum, document starts in order, tokens below the vocabulary. llm.c files carry none of these.
  void verify() const;
  // Identifies the content: the checksum, or for llm.c files (which have none) a hash of size, both ends and samples between them.
  uint64_t identity() const;

 private:
  void map();
  void check_nsp();
  void check_llmc();
  void check_size(uint64_t expected) const;
  const unsigned char* tokens_begin() const noexcept;
  std::size_t padded_token_bytes() const noexcept;
  [[noreturn]] void out_of_range(int64_t index, int64_t token, int64_t vocabulary) const;

  std::string path_;
  TokenFileFacts facts_;
  const unsigned char* data_ = nullptr;  // of the mapping, owned
  std::size_t bytes_ = 0;
};

}  // namespace nsp
