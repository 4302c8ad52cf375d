#include "core/data/token_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/data/content_hash.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

// What llm.c's scripts write.
struct LlmcFormat {
  int32_t magic, version;
  int64_t token_bytes;
  const char* tokenizer;
};
constexpr LlmcFormat llmc_formats[] = {{20240520, 1, 2, "llmc"}, {20240801, 7, 4, "llmc-llama3"}};
constexpr std::size_t llmc_header_bytes = 1024;
constexpr std::string_view lfs_pointer = "version https://git-lfs";

template <class Word>
Word load(const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Token>
int64_t copy_tokens(const unsigned char* from, int64_t count, int32_t* to) {
  int64_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto token = load<Token>(from + i * static_cast<int64_t>(sizeof(Token)));
    largest = std::max<int64_t>(largest, token);
    to[i] = static_cast<int32_t>(token);
  }
  return largest;
}

const LlmcFormat* llmc_format(int32_t magic) {
  for (const LlmcFormat& format : llmc_formats)
    if (format.magic == magic) return &format;
  return nullptr;
}

// Closes on every way out of the constructor.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {
  map();
  try {
    const std::string_view start(reinterpret_cast<const char*>(data_), std::min<std::size_t>(bytes_, 64));
    if (start.starts_with("nsptoken"))
      check_nsp();
    else if (bytes_ >= 4 && llmc_format(load<int32_t>(data_)) != nullptr)
      check_llmc();
    else if (start.starts_with(lfs_pointer))
      throw Error(ErrorKind::input, path_ +
                                        " is a Git LFS pointer, not the data. The repository was cloned without its large files. Run "
                                        "git lfs pull there, then start again.");
    else
      throw Error(ErrorKind::input, path_ +
                                        " is not a token file. It begins with the mark of neither an nsp nor an llm.c shard. Make token "
                                        "files of text with: nsp_app prepare --input " +
                                        path_ + " --output data/mine");
  } catch (...) {
    ::munmap(const_cast<unsigned char*>(data_), bytes_);
    throw;
  }
}

TokenFile::~TokenFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), bytes_);
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      facts_(std::move(other.facts_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

void TokenFile::map() {
  const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    throw Error(ErrorKind::input, "cannot open token file " + path_ + ". " + std::strerror(errno) + ". Check data.path and data.val_path.");
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorKind::input, path_ + " is not a token file. It is not a plain file. Name the files themselves, or a prepared folder.");
  bytes_ = static_cast<std::size_t>(status.st_size);
  if (bytes_ == 0)
    throw Error(ErrorKind::input,
                path_ + " is empty. A token file has at least a header of 256 bytes. Copy it again or run nsp_app prepare again.");
  void* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.number, 0);
  if (at == MAP_FAILED)
    throw Error(ErrorKind::io,
                "cannot map " + path_ + " into memory. " + std::strerror(errno) + ". Check the limits on address space (ulimit -v).");
  data_ = static_cast<const unsigned char*>(at);
}

void TokenFile::check_size(uint64_t expected) const {
  if (bytes_ == expected) return;
  throw Error(ErrorKind::input, path_ + (bytes_ < expected ? " is truncated" : " is too long") + ": its header promises " +
                                    std::to_string(expected) + " bytes, the file has " + std::to_string(bytes_) + " bytes" +
                                    ". It was cut or mixed up while it was written or copied. Copy it again or run nsp_app prepare again.");
}

void TokenFile::check_nsp() {
  if (bytes_ < token_header_bytes) check_size(token_header_bytes);
  const uint32_t version = load<uint32_t>(data_ + 8);
  if (version != 1)
    throw Error(ErrorKind::input, path_ + " has token file version " + std::to_string(version) +
                                      ". This nsp reads version 1. Prepare the "
                                      "text again with this nsp, or use a newer nsp.");
  XxHash64 hash;
  hash.add(data_, token_header_bytes - 8);
  facts_.token_bytes = load<uint32_t>(data_ + 12);
  facts_.vocabulary = load<int64_t>(data_ + 16);
  facts_.tokens = load<int64_t>(data_ + 24);
  facts_.documents = load<int64_t>(data_ + 32);
  facts_.original_bytes = load<int64_t>(data_ + 40);
  facts_.checksum = load<uint64_t>(data_ + 48);
  const char* name = reinterpret_cast<const char*>(data_ + 64);
  facts_.tokenizer.assign(name, ::strnlen(name, 64));
  constexpr int64_t limit = int64_t{1} << 58;  // keeps the size below from overflowing
  const bool sane = (facts_.token_bytes == 2 || facts_.token_bytes == 4) && facts_.tokens >= 0 && facts_.tokens < limit &&
                    facts_.documents >= 0 && facts_.documents < limit && facts_.vocabulary > 0;
  if (hash.value() != load<uint64_t>(data_ + token_header_bytes - 8) || !sane)
    throw Error(ErrorKind::input, path_ +
                                      " has a damaged header. Its checksum does not fit its content. Copy the file again or run nsp_app "
                                      "prepare again.");
  check_size(token_header_bytes + padded_token_bytes() + 8 * static_cast<uint64_t>(facts_.documents));
}

void TokenFile::check_llmc() {
  if (bytes_ < llmc_header_bytes) check_size(llmc_header_bytes);
  const LlmcFormat& format = *llmc_format(load<int32_t>(data_));
  const int32_t version = load<int32_t>(data_ + 4), count = load<int32_t>(data_ + 8);
  if (version != format.version || count < 0)
    throw Error(ErrorKind::input, path_ + " is an llm.c token file that nsp cannot read: number " + std::to_string(format.magic) +
                                      ", version " + std::to_string(version) + ", " + std::to_string(count) +
                                      " tokens. nsp reads 20240520 version 1 (GPT-2, 16-bit tokens) and 20240801 version 7 (Llama 3, "
                                      "32-bit tokens). Write it with llm.c's current data scripts, or prepare the text with nsp_app "
                                      "prepare.");
  facts_.llmc = true;
  facts_.tokenizer = format.tokenizer;
  facts_.token_bytes = format.token_bytes;
  facts_.tokens = count;
  check_size(llmc_header_bytes + static_cast<uint64_t>(format.token_bytes) * static_cast<uint64_t>(count));
}

const unsigned char* TokenFile::tokens_begin() const noexcept {
  return data_ + (facts_.llmc ? llmc_header_bytes : token_header_bytes);
}

std::size_t TokenFile::padded_token_bytes() const noexcept {
  return (static_cast<std::size_t>(facts_.tokens * facts_.token_bytes) + 7) / 8 * 8;
}

std::span<const uint64_t> TokenFile::document_starts() const noexcept {
  if (facts_.documents == 0) return {};
  // Header and padded tokens are multiples of 8 bytes, so the starts are aligned in the mapping.
  return {reinterpret_cast<const uint64_t*>(tokens_begin() + padded_token_bytes()), static_cast<std::size_t>(facts_.documents)};
}

void TokenFile::read(int64_t first, int64_t count, int64_t vocabulary, int32_t* to) const {
  NSP_REQUIRE(first >= 0 && count >= 0 && first + count <= facts_.tokens, "tokens are read from within their file");
  const unsigned char* from = tokens_begin() + first * facts_.token_bytes;
  const int64_t largest = facts_.token_bytes == 2 ? copy_tokens<uint16_t>(from, count, to) : copy_tokens<uint32_t>(from, count, to);
  if (vocabulary == 0 || largest < vocabulary) return;
  for (int64_t i = 0; i < count; ++i)
    if (const int64_t token = static_cast<uint32_t>(to[i]); token >= vocabulary) out_of_range(first + i, token, vocabulary);
}

void TokenFile::out_of_range(int64_t index, int64_t token, int64_t vocabulary) const {
  const int64_t offset = (tokens_begin() - data_) + index * facts_.token_bytes;
  throw Error(ErrorKind::input,
              "token out of range: " + path_ + " has token " + std::to_string(token) + " at index " + std::to_string(index) + " (byte " +
                  std::to_string(offset) + "), the vocabulary has " + std::to_string(vocabulary) +
                  ". The file is damaged or was made for a larger vocabulary. Set model.vocab to that of the tokenizer, or "
                  "copy the file again.");
}

void TokenFile::verify() const {
  if (facts_.llmc) return;
  XxHash64 hash;
  hash.add(data_ + token_header_bytes, bytes_ - token_header_bytes);
  if (hash.value() != facts_.checksum)
    throw Error(ErrorKind::input, path_ + " is damaged: its content has checksum " + hash_text(hash.value()) + ", its header says " +
                                      hash_text(facts_.checksum) +
                                      ". The disk or a copy changed it. Copy the file again or run nsp_app prepare "
                                      "again.");
  // What follows holds in every file that nsp wrote; another program may have computed a checksum over nonsense.
  const auto starts = document_starts();
  for (std::size_t i = 0; i < starts.size(); ++i)
    if (starts[i] >= static_cast<uint64_t>(facts_.tokens) || (i > 0 && starts[i] <= starts[i - 1]))
      throw Error(ErrorKind::input, path_ + " is not a valid token file: document " + std::to_string(i) + " starts at token " +
                                        std::to_string(starts[i]) +
                                        ", out of order or past the end. The program that wrote it is wrong. Run "
                                        "nsp_app prepare again.");
  constexpr int64_t block = 4096;
  int32_t tokens[block];
  for (int64_t i = 0; i < facts_.tokens; i += block) read(i, std::min(block, facts_.tokens - i), facts_.vocabulary, tokens);
}

uint64_t TokenFile::identity() const {
  XxHash64 hash;
  hash.add(static_cast<uint64_t>(facts_.tokens));
  if (!facts_.llmc) {
    hash.add(facts_.checksum);
    return hash.value();
  }
  // 64 blocks spread evenly from the first to the last byte: a few pages of a shard of any size.
  constexpr std::size_t block = 4096, blocks = 64;
  if (bytes_ <= block * blocks) {
    hash.add(data_, bytes_);
  } else {
    for (std::size_t i = 0; i < blocks; ++i) hash.add(data_ + (bytes_ - block) / (blocks - 1) * i, block);
    hash.add(data_ + bytes_ - block, block);
  }
  return hash.value();
}

}  // namespace nsp
