// The first reading of prepare: every document's hash, which is enough to decide its split before the first token is written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/data/read_meter.hpp"

namespace nsp {

struct TextFileFacts {
  std::string path;
  int64_t documents = 0, bytes = 0;
};

struct Survey {
  std::vector<TextFileFacts> files;        // that have documents, in the order given
  std::vector<uint64_t> hashes;            // one per document, in order
  std::map<std::string, int64_t> skipped;  // why -> how many
};

struct SurveyOptions {
  std::string text_key;
  uint64_t seed = 1;  // of the hashes
  int threads = 1;    // files that are read at once; the result does not depend on it
};

// The meter is told from this thread. Of several files that cannot be read the first one is the Error, whatever the threads.
Survey survey_files(const std::vector<std::string>& files, const SurveyOptions& options, ReadMeter& meter);

}  // namespace nsp
