// Token shards of nsp and of llm.c. Most inputs get right checksums, since no mutation would find them and the code behind them
// must stand on its own.
#include "core/data/token_file.hpp"

#include <cstring>
#include <vector>

#include "nsp/error.hpp"
#include "nsp/xxhash64.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

void mend_checksums(std::vector<uint8_t>& bytes) {
  if (bytes.size() < nsp::token_header_bytes) return;
  nsp::XxHash64 all;
  all.add(bytes.data() + nsp::token_header_bytes, bytes.size() - nsp::token_header_bytes);
  const uint64_t content = all.value();
  std::memcpy(bytes.data() + 48, &content, 8);
  nsp::XxHash64 head;
  head.add(bytes.data(), 248);
  const uint64_t header = head.value();
  std::memcpy(bytes.data() + 248, &header, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] % 4 != 0) mend_checksums(bytes);
  const nsp::fuzz::MemoryFile file(bytes.data(), bytes.size());
  try {
    const nsp::TokenFile tokens(file.path());
    const nsp::TokenFileFacts& facts = tokens.facts();
    tokens.identity();
    std::vector<int32_t> out(16);
    for (int64_t at = 0; at + 16 <= facts.tokens && at < 1024; at += 16) tokens.read(at, 16, facts.vocabulary, out.data());
    if (facts.tokens > 0) tokens.read(facts.tokens - 1, 1, 0, out.data());
    tokens.verify();
  } catch (const nsp::Error& error) {
    if (error.kind() != nsp::ErrorKind::input) throw;
  }
  return 0;
}
