// DataSource over token files: the shards of a split as one stream of tokens, cut into windows.
//
// Window i is tokens [i T, i T + T + 1) of the stream (T = context): inputs overlap by none, the last label of a window is the first
// input of the next; windows run across shards. data.path is
//   a folder made by nsp_app prepare: its train and val splits;
//   or token files (nsp or llm.c): files and globs, several separated by commas, in the order of their names.
// What is held out: data.val_path if given (a prepared folder gives its val split); else the val split of a prepared folder; else, for
// plain token files, the last val_fraction of the windows, which training then leaves out (0 = nothing, at least one window otherwise).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/token_file.hpp"
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
  // Windows [first, first + count) of the stream. REQUIRES at least one file, all of one tokenizer, the windows within the stream.
  TokenSource(std::vector<TokenFile> files, int64_t context, int64_t first, int64_t count);

  int64_t samples() const override { return samples_; }
  int64_t context() const override { return context_; }
  int64_t vocabulary() const override { return files_.front().facts().vocabulary; }  // 0 for llm.c files, which do not say
  const std::string& tokenizer() const override { return files_.front().facts().tokenizer; }
  const std::string& fingerprint() const override { return fingerprint_; }
  double bytes_per_token() const override { return bytes_per_token_; }
  void read(int64_t sample, int32_t* tokens, int32_t* document_start) override;

  // Tells the model's vocabulary: Error(usage) if the data's is larger; from now on read() refuses any token that is not below it.
  void limit_vocabulary(int64_t model_vocabulary);
  bool knows_documents() const noexcept { return !files_.front().facts().llmc; }

 private:
  std::vector<TokenFile> files_;
  std::vector<int64_t> begins_;  // stream offset of each file's first token
  int64_t context_, first_, samples_;
  int64_t vocabulary_limit_ = 0;
  std::string fingerprint_;
  double bytes_per_token_ = 0;
};

// Error(input) if there are no windows for training.
std::unique_ptr<TokenSource> open_train(const TokenSourceOptions& options);
// nullptr if nothing is held out. Error(input) if what is held out does not fill a window.
std::unique_ptr<TokenSource> open_val(const TokenSourceOptions& options);

}  // namespace nsp
