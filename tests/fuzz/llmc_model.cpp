// Model files of llm.c.
#include "io/llmc_file.hpp"
#include "nsp/error.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const nsp::fuzz::MemoryFile file(data, size);
  nsp::is_llmc_model(file.path());
  try {
    const nsp::LlmcModel model = nsp::read_llmc_model(file.path());
    float sum = 0;
    for (const auto& [name, tensor] : model.tensors)
      for (const float value : tensor.values) sum += value;
    volatile float kept = sum;
    (void)kept;
  } catch (const nsp::Error& error) {
    if (error.kind() != nsp::ErrorKind::input && error.kind() != nsp::ErrorKind::io) throw;
  }
  return 0;
}
