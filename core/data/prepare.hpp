// Text to token shards: what the verb prepare does, and the training data of `data.path auto`.
//
// Inputs are files, folders and globs (file_search.hpp); *.jsonl files have a document a line, any other file is one document. Empty and
// binary files are passed over, counted and reported. Documents keep the order of the sorted paths; each ends with the tokenizer's end
// token. A document is held out if a hash of (seed, its content) says so, hence the choice depends on neither names nor order, and equal
// documents are always on the same side. Of two or more different documents at least one goes to each split. If all documents are
// equal, one is kept and the end of its tokens is held out.
//
// The output folder (prepared_index.hpp) appears whole or not at all; equal inputs and options give equal bits. Text is read twice
// (hashes, several files at once; then tokens) in blocks: memory is 8 bytes per document and small buffers.
// Errors: Error(usage) for bad options; Error(input): no text at all, unreadable file, bad JSONL line, output cannot be made or must not be
// replaced, a file changed meanwhile; Error(io): a write failed (full disk).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/data/prepared_index.hpp"

namespace nsp {

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer = "bytes";
  double val_fraction = 0.05;  // of the documents, in [0, 1); 0 = no held-out split
  uint64_t seed = 1;           // of the held-out choice
  std::string text_key = "text";
  int64_t shard_tokens = int64_t{1} << 27;  // at most, per shard
  int threads = 1;                          // of the first reading; the output does not depend on it
  // Told how many of how many bytes are read, both readings together, after each MiB. What it throws ends the preparation, and nothing
  // is left behind.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct PrepareReport {
  std::string output;
  int64_t files = 0;                       // that gave text
  int64_t documents = 0;                   // all, both splits
  std::map<std::string, int64_t> skipped;  // why -> how many
  std::vector<std::string> notes;
  PreparedIndex index;

  std::string text() const;  // several lines for the user
};

PrepareReport prepare(const PrepareOptions& options);

}  // namespace nsp
