#include "core/data/token_file_writer.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "nsp/error.hpp"

namespace nsp {
namespace {

template <class Word>
void store(unsigned char* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

std::array<unsigned char, token_header_bytes> header_of(const TokenFileFacts& facts) {
  std::array<unsigned char, token_header_bytes> header{};
  std::memcpy(header.data(), "nsptoken", 8);
  store<uint32_t>(header.data() + 8, 1);
  store<uint32_t>(header.data() + 12, static_cast<uint32_t>(facts.token_bytes));
  store<int64_t>(header.data() + 16, facts.vocabulary);
  store<int64_t>(header.data() + 24, facts.tokens);
  store<int64_t>(header.data() + 32, facts.documents);
  store<int64_t>(header.data() + 40, facts.original_bytes);
  store<uint64_t>(header.data() + 48, facts.checksum);
  std::memcpy(header.data() + 64, facts.tokenizer.data(), facts.tokenizer.size());
  XxHash64 hash;
  hash.add(header.data(), header.size() - 8);
  store<uint64_t>(header.data() + header.size() - 8, hash.value());
  return header;
}

}  // namespace

TokenFileWriter::TokenFileWriter(std::string path, int64_t vocabulary, std::string tokenizer) : file_(std::move(path)) {
  NSP_REQUIRE(vocabulary > 0 && vocabulary <= INT32_MAX, "a vocabulary is positive and its ids fit 32 bits");
  NSP_REQUIRE(tokenizer.size() < 64, "a tokenizer id has at most 63 characters");
  facts_.vocabulary = vocabulary;
  facts_.token_bytes = vocabulary <= 65536 ? 2 : 4;
  facts_.tokenizer = std::move(tokenizer);
  const std::array<unsigned char, token_header_bytes> space{};  // the true header is known in finish()
  file_.append(space.data(), space.size());
}

void TokenFileWriter::put(const void* data, std::size_t bytes) {
  hash_.add(data, bytes);
  file_.append(data, bytes);
}

void TokenFileWriter::begin_document() {
  NSP_REQUIRE(starts_.empty() || starts_.back() < static_cast<uint64_t>(facts_.tokens), "a document has at least one token");
  starts_.push_back(static_cast<uint64_t>(facts_.tokens));
}

void TokenFileWriter::append(std::span<const int32_t> tokens, int64_t original_bytes) {
  constexpr std::size_t block = 4096;
  std::array<uint16_t, block> narrow;
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const auto part = tokens.subspan(first, std::min(block, tokens.size() - first));
    for (std::size_t i = 0; i < part.size(); ++i) {
      NSP_REQUIRE(part[i] >= 0 && part[i] < facts_.vocabulary, "a tokenizer gives ids within its vocabulary");
      narrow[i] = static_cast<uint16_t>(part[i]);
    }
    if (facts_.token_bytes == 2)
      put(narrow.data(), part.size() * sizeof(uint16_t));
    else
      put(part.data(), part.size_bytes());
  }
  facts_.tokens += static_cast<int64_t>(tokens.size());
  facts_.original_bytes += original_bytes;
}

TokenFileFacts TokenFileWriter::finish() {
  NSP_REQUIRE(starts_.empty() || starts_.back() < static_cast<uint64_t>(facts_.tokens), "a document has at least one token");
  const std::array<unsigned char, 8> zeros{};
  put(zeros.data(), static_cast<std::size_t>((8 - facts_.tokens * facts_.token_bytes % 8) % 8));
  put(starts_.data(), starts_.size() * sizeof(uint64_t));
  facts_.documents = static_cast<int64_t>(starts_.size());
  facts_.checksum = hash_.value();
  const auto header = header_of(facts_);
  file_.overwrite(0, header.data(), header.size());
  file_.commit();
  return facts_;
}

}  // namespace nsp
