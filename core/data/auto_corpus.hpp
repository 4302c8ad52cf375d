// Training data without any data: `data.path auto` is this machine's C and C++ headers, prepared into the run directory.
//
// Candidates: *.h, *.hpp, *.hh, and below a folder named c++ also files without an extension (the standard headers). Of these, files are
// taken in the order of a hash of their path until the budget is reached: a spread over all libraries that is the same for the same
// set of files, whatever the order of folders.
// One process prepares (rank 0); the others wait for it and open the folder. Errors: as prepare; Error(input) if there are no headers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nsp {

struct AutoCorpusOptions {
  std::vector<std::string> roots;     // folders and globs; empty = /usr/include and the compilers' own headers
  int64_t budget_bytes = 24'000'000;  // of text
  double val_fraction = 0.05;
  uint64_t seed = 1;  // of the held-out choice
};

// Prepares RUN/data and returns its path. What is there already is kept if it is whole (checksums) and was made with the same fraction
// and seed, even if headers were installed since: a run goes on with the data that it began with. say: takes one line for the log.
std::string prepare_auto_corpus(const std::string& run_dir, const AutoCorpusOptions& options,
                                const std::function<void(const std::string&)>& say);

}  // namespace nsp
