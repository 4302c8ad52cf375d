// What the tests of prepare share: small corpora, and the documents of a prepared folder read back from its shards.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/data/prepare.hpp"
#include "core/data/token_file.hpp"
#include "tests/data/temporary_folder.hpp"

namespace nsp {

using Documents = std::vector<std::string>;

inline PrepareOptions options_of(const std::vector<std::string>& inputs, const std::string& output, double val_fraction = 0.05) {
  PrepareOptions options;
  options.inputs = inputs;
  options.output = output;
  options.val_fraction = val_fraction;
  return options;
}

// Documents of one split, taken from its shards; a document without an end token gets the mark "...".
inline Documents documents_of(const std::string& folder, const char* split) {
  const PreparedIndex index = read_prepared_index(folder);
  Documents documents;
  for (const PreparedShard& shard : std::string(split) == "train" ? index.train : index.val) {
    const TokenFile file(folder + "/" + shard.name);
    file.verify();
    std::vector<int32_t> tokens(static_cast<std::size_t>(file.facts().tokens));
    file.read(0, file.facts().tokens, 257, tokens.data());
    std::set<uint64_t> starts(file.document_starts().begin(), file.document_starts().end());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (starts.count(i)) documents.push_back("...");
      std::string& text = documents.back();
      if (tokens[i] == 256)
        text.resize(text.size() - 3);
      else
        text.insert(text.size() - 3, 1, static_cast<char>(tokens[i]));
    }
  }
  return documents;
}

inline Documents all_documents(const std::string& folder) {
  Documents all = documents_of(folder, "train"), val = documents_of(folder, "val");
  all.insert(all.end(), val.begin(), val.end());
  std::sort(all.begin(), all.end());
  return all;
}

inline std::string number_text(int i) {
  return "document " + std::to_string(i) + "\n";
}

inline void plant(const TemporaryFolder& folder, int count) {
  for (int i = 0; i < count; ++i) write_text(folder / ("text/d" + std::to_string(1000 + i) + ".txt"), number_text(i));
}

}  // namespace nsp
