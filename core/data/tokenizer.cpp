#include "core/data/tokenizer.hpp"

#include "core/data/byte_tokenizer.hpp"
#include "nsp/error.hpp"

namespace nsp {

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& id) {
  if (id == "bytes") return std::make_unique<ByteTokenizer>();
  throw Error(ErrorKind::usage, "tokenizer '" + id + "' is not known. This nsp has one tokenizer. Use --tokenizer bytes.");
}

}  // namespace nsp
