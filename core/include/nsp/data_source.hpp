// Token data as equally long windows. A source is random access: the order of samples and the position of a run are core's
// (core/data/batch_order.hpp), so a resumed run continues exactly, whatever the number of ranks.
// Thread: one at a time. Errors: Error(input) that names the file and offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nsp {

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t samples() const = 0;                 // windows of context() tokens with their successors
  virtual int64_t context() const = 0;                 // tokens of a window
  virtual int64_t vocabulary() const = 0;              // token ids are below this
  virtual const std::string& tokenizer() const = 0;    // id, "bytes"
  virtual const std::string& fingerprint() const = 0;  // of the data itself; a run refuses to go on with another
  virtual double bytes_per_token() const = 0;          // of the original text; 0 = not known
  // tokens: context() + 1 ids, inputs are [0, context) and labels [1, context]. document_start: context() positions in the
  // window, each the first token of the document that the token belongs to; nullptr if not wanted.
  // A label that begins another document is kept: it is the end-of-document prediction.
  virtual void read(int64_t sample, int32_t* tokens, int32_t* document_start) = 0;
};

}  // namespace nsp
