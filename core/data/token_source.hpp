// DataSource over token files, cut into windows (token_stream.hpp). data.path names one corpus or a mixture (corpus_list.hpp); a corpus is
//   a folder made by nsp_app prepare: its train and val splits;
//   or token files (nsp or llm.c): files and globs, in the order of their names.
// What is held out: data.val_path if given (a prepared folder gives its val split); else the val split of a prepared folder; else, for
// plain token files, the last val_fraction of the windows, which training then leaves out (0 = nothing, at least one window otherwise).
// The samples of a mixture for training are those of the first corpus, then of the second, and so on; BatchOrder mixes them. Held-out
// samples of a mixture are mixed here: any first part of them has the weights of the mixture, as long as no corpus has run out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/batch_order.hpp"
#include "core/data/token_stream.hpp"
#include "nsp/data_source.hpp"

namespace nsp {

struct TokenSourceOptions {
  std::string path;            // data.path, not "auto"
  std::string val_path;        // data.val_path, empty = not given
  int64_t context = 0;         // tokens of a window
  double val_fraction = 0.05;  // of the windows, for plain token files only
  bool verify = false;         // read every shard whole and compare its checksum
};

class TokenSource : public DataSource {
 public:
  // One stream per corpus. REQUIRES at least one, all of one tokenizer and one context. interleaved: samples are in the proportions of
  // the weights, not corpus by corpus.
  TokenSource(std::vector<TokenStream> streams, std::vector<CorpusShare> corpora, int64_t context, bool interleaved);

  int64_t samples() const override { return begins_.back(); }
  int64_t context() const override { return context_; }
  int64_t vocabulary() const override { return streams_.front().facts().vocabulary; }  // 0 for llm.c files, which do not say
  const std::string& tokenizer() const override { return streams_.front().facts().tokenizer; }
  const std::string& fingerprint() const override { return fingerprint_; }
  double bytes_per_token() const override { return bytes_per_token_; }
  void read(int64_t sample, int32_t* tokens, int32_t* document_start) override;

  // The corpora with their samples and weights: what BatchOrder mixes.
  const std::vector<CorpusShare>& corpora() const noexcept { return corpora_; }
  // Tells the model's vocabulary: Error(usage) if the data's is larger; from now on read() refuses any token that is not below it.
  void limit_vocabulary(int64_t model_vocabulary);
  bool knows_documents() const noexcept { return !streams_.front().facts().llmc; }

 private:
  void interleave();
  std::vector<TokenStream> streams_;
  std::vector<CorpusShare> corpora_;
  std::vector<int64_t> begins_;  // first sample of each corpus, and the end
  std::vector<int64_t> order_;   // of interleaved samples; empty: as they are
  int64_t context_;
  int64_t vocabulary_limit_ = 0;
  std::string fingerprint_;
  double bytes_per_token_ = 0;
};

// Error(input) if there are no windows for training.
std::unique_ptr<TokenSource> open_train(const TokenSourceOptions& options);
// nullptr if nothing is held out. Error(input) if what is held out does not fill a window.
std::unique_ptr<TokenSource> open_val(const TokenSourceOptions& options);

}  // namespace nsp
