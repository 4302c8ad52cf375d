// Text to token ids and back. The id goes into every token file and checkpoint; a run refuses data of another tokenizer.
// Immutable after it is made: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsp {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual const std::string& id() const = 0;                                           // at most 63 characters
  virtual int64_t vocabulary() const = 0;                                              // ids are below this
  virtual int32_t end_of_document() const = 0;                                         // follows each document; no text encodes to it
  virtual void encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;  // appends
  // How many leading bytes of `text` have the same tokens whatever follows: a long text is encoded in such pieces.
  virtual std::size_t independent_prefix(std::string_view text) const = 0;
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;  // end_of_document gives no text; Error(input) for other ids
};

// Error(usage) for an id that this nsp does not know.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& id);

}  // namespace nsp
