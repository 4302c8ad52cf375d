// The reference problem of tests/golden/llmc_tiny: a tiny GPT-2 and token shards in llm.c's formats.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "core/data/token_source.hpp"
#include "io/llmc_file.hpp"
#include "tests/train/local_job.hpp"

namespace nsp::test {

inline std::string golden(const std::string& path) {
  const char* source = std::getenv("NSP_TEST_SOURCE_DIR");
  return std::string(source ? source : ".") + "/tests/golden/" + path;
}

inline std::unique_ptr<DataSource> tiny_data(const std::string& split) {
  TokenSourceOptions options;
  options.path = golden("llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_" + split + ".bin");
  options.context = 64;
  options.val_fraction = 0;
  return open_train(options);
}

// Model, data and initial weights of llmc_tiny; optimizer and schedule are the caller's.
LocalSettings tiny_settings();

}  // namespace nsp::test
