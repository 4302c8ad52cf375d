// prepare.ini of a prepared folder: what the folder holds, written last, so a folder without it is not a prepared one.
//
//     [prepared]  version, tokenizer, vocabulary, seed, val_fraction, original bytes, fingerprint
//     [train] and [val]  a line `name = tokens documents checksum` for each shard, in the order of the token stream
//
// Errors: Error(input) that names file and line. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/token_file.hpp"

namespace nsp {

struct PreparedShard {
  std::string name;  // in the folder
  int64_t tokens = 0;
  int64_t documents = 0;
  uint64_t checksum = 0;
};

struct PreparedIndex {
  std::string tokenizer;
  int64_t vocabulary = 0;
  uint64_t seed = 0;
  double val_fraction = 0;
  int64_t original_bytes = 0;
  std::vector<PreparedShard> train, val;

  std::string fingerprint() const;  // of both splits: shard sizes and checksums in order
};

std::string prepared_index_path(const std::string& folder);
bool is_prepared_folder(const std::string& folder) noexcept;  // has a prepare.ini that begins as nsp writes it
PreparedIndex read_prepared_index(const std::string& folder);
void write_prepared_index(const PreparedIndex& index, const std::string& folder);

}  // namespace nsp
