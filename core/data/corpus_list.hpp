// What data.path and data.val_path name: one corpus, or several with weights.
//
//     data/a                    a prepared folder, a token file or a glob of token files
//     x.bin,y.bin               token files without weights: one corpus, in the order of their names
//     data/a:3,data/b:1         a mixture: three of four training sequences are of data/a
//     data/a,data/b             prepared folders without weights: a mixture by size
// A colon belongs to a weight only if a number > 0 follows it to the end of the entry. Spaces around entries are dropped. A name that
// exists as it stands is never taken apart.
#pragma once

#include <string>
#include <vector>

namespace nsp {

struct CorpusEntry {
  std::vector<std::string> paths;  // several only for token files without weights
  double weight = 0;               // 0: by size
};

// key: for the error text. Error(input): nothing is named, a weight that is no weight, or weights for some entries only.
std::vector<CorpusEntry> read_corpus_list(const std::string& text, const std::string& key);

}  // namespace nsp
