// Each byte is a token (0 to 255), 256 ends a document. Lossless for any text in any encoding, needs no files.
#pragma once

#include "core/data/tokenizer.hpp"

namespace nsp {

class ByteTokenizer : public Tokenizer {
 public:
  const std::string& id() const override { return id_; }
  int64_t vocabulary() const override { return 257; }
  int32_t end_of_document() const override { return 256; }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override;
  std::size_t independent_prefix(std::string_view text) const override { return text.size(); }
  std::string decode(std::span<const int32_t> tokens) const override;

 private:
  std::string id_ = "bytes";
};

}  // namespace nsp
