#include "core/data/byte_tokenizer.hpp"

#include "nsp/error.hpp"

namespace nsp {

void ByteTokenizer::encode(std::string_view text, std::vector<int32_t>& tokens) const {
  tokens.reserve(tokens.size() + text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const int32_t token : tokens) {
    if (token < 0 || token > 256)
      throw Error(ErrorKind::input,
                  "token " + std::to_string(token) +
                      " is not of the tokenizer 'bytes', whose ids end at 256. The model was "
                      "trained on tokens of another tokenizer, or has a larger vocabulary. Use the tokenizer of its data.");
    if (token < 256) text.push_back(static_cast<char>(token));
  }
  return text;
}

}  // namespace nsp
