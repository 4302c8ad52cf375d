// Token files as one stream of tokens, cut into windows. Window i is tokens [i T, i T + T + 1) (T = context): inputs overlap by none, the
// last label of a window is the first input of the next; windows run across files. A document that is longer than a window goes on in
// the next one, where it begins at position 0.
// Errors: Error(input) that names the file and offset. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/token_file.hpp"

namespace nsp {

class TokenStream {
 public:
  // Windows [first, first + count) of the files. REQUIRES at least one file, all of one tokenizer, the windows within them.
  TokenStream(std::vector<TokenFile> files, int64_t context, int64_t first, int64_t count);

  int64_t samples() const noexcept { return samples_; }
  const TokenFileFacts& facts() const noexcept { return files_.front().facts(); }  // tokenizer and vocabulary; llmc
  const std::string& path() const noexcept { return files_.front().path(); }
  const std::string& fingerprint() const noexcept { return fingerprint_; }
  int64_t tokens() const noexcept { return tokens_; }  // of the files
  int64_t original_bytes() const noexcept { return original_bytes_; }
  // As DataSource::read; each token must be below `limit` (0 = unchecked).
  void read(int64_t sample, int64_t limit, int32_t* tokens, int32_t* document_start) const;

 private:
  std::vector<TokenFile> files_;
  std::vector<int64_t> begins_;  // stream offset of each file's first token
  int64_t context_, first_, samples_;
  int64_t tokens_ = 0, original_bytes_ = 0;
  std::string fingerprint_;
};

int64_t tokens_of(const std::vector<TokenFile>& files);
int64_t windows_of(const std::vector<TokenFile>& files, int64_t context);

}  // namespace nsp
