#include "io/file_seal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "io/durable.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

constexpr char magic[8] = {'n', 's', 'p', 's', 'e', 'a', 'l', '1'};
struct Seal {
  char word[8];
  uint64_t bytes;  // of the file without its seal; little-endian, as on every machine that nsp is built for
  uint64_t checksum;
};
static_assert(sizeof(Seal) == 24);

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, const h5::Check& check) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) check.fail(errno_text(errno));
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Feeds the first `bytes` of the file; false if it is shorter.
bool hash_file(int fd, uint64_t bytes, XxHash64& hash, const h5::Check& check) {
  std::vector<char> block(1 << 16);
  for (uint64_t at = 0; at < bytes;) {
    const ssize_t got = ::pread(fd, block.data(), std::min<uint64_t>(block.size(), bytes - at), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) check.fail(errno_text(errno));
    if (got == 0) return false;
    hash.add(block.data(), static_cast<std::size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return true;
}

uint64_t size_of_file(int fd, const h5::Check& check) {
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) check.fail(errno_text(errno));
  return static_cast<uint64_t>(end);
}

}  // namespace

void seal_file(const std::string& path, const h5::Check& check) {
  const Descriptor file(path, O_RDWR, check);
  Seal seal{};
  std::memcpy(seal.word, magic, sizeof magic);
  seal.bytes = size_of_file(file.get(), check);
  XxHash64 hash;
  if (!hash_file(file.get(), seal.bytes, hash, check)) check.fail("it was cut while it was written");
  seal.checksum = hash.value();
  for (std::size_t done = 0; done < sizeof seal;) {
    const ssize_t wrote =
        ::pwrite(file.get(), reinterpret_cast<const char*>(&seal) + done, sizeof seal - done, static_cast<off_t>(seal.bytes + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) check.fail(errno_text(errno));
    done += static_cast<std::size_t>(wrote);
  }
}

void check_seal(const std::string& path, const h5::Check& check) {
  const Descriptor file(path, O_RDONLY, check);
  const uint64_t size = size_of_file(file.get(), check);
  Seal seal{};
  if (size < sizeof seal) check.fail("it is " + std::to_string(size) + " bytes long");
  const ssize_t got = ::pread(file.get(), &seal, sizeof seal, static_cast<off_t>(size - sizeof seal));
  if (got != static_cast<ssize_t>(sizeof seal) || std::memcmp(seal.word, magic, sizeof magic) != 0 || seal.bytes != size - sizeof seal)
    check.fail("its seal is missing at the end, so it was cut or written by another version of nsp");
  XxHash64 hash;
  if (!hash_file(file.get(), seal.bytes, hash, check) || hash.value() != seal.checksum) check.fail("its checksum differs");
}

}  // namespace nsp
