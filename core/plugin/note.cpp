#include "core/plugin/note.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "nsp/abi.h"

namespace nsp {
namespace {

constexpr uint64_t kMostNoteBytes = 64 * 1024;
constexpr uint64_t kMostHeaders = 1024;  // linkers write about ten
// The descriptor: class, major, minor, 0, then the features.
constexpr uint64_t kFixedBytes = 4 * sizeof(uint32_t) + sizeof(uint64_t);

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr uint16_t kMachine = EM_PPC64;
#else
#error "add the ELF machine number of this processor"
#endif

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      error_ = std::strerror(errno);
      return;
    }
    struct stat status {};
    if (fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<uint64_t>(status.st_size);
    } else {
      error_ = "it is not a regular file";
    }
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& error() const noexcept { return error_; }
  // All n bytes from offset, or false.
  bool read(uint64_t offset, void* to, uint64_t n) const {
    if (offset > size_ || n > size_ - offset) return false;
    auto* bytes = static_cast<char*>(to);
    while (n > 0) {
      const ssize_t got = ::pread(descriptor_, bytes, n, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      bytes += got;
      offset += static_cast<uint64_t>(got);
      n -= static_cast<uint64_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
  uint64_t size_ = 0;
  std::string error_;
};

// Why the header is not that of a shared object for this processor; "" if it is.
std::string check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is not an ELF file";
  const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != order) return "it is not a 64-bit ELF file of this byte order";
  if (header.e_machine != kMachine) return "it is built for another processor (ELF machine " + std::to_string(header.e_machine) + ")";
  if (header.e_type != ET_DYN) return "it is not a shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMostHeaders) return "its program headers are damaged";
  return "";
}

// One string of the descriptor, moving *at behind its end. Control characters are refused: the text goes to a terminal.
bool take_string(const std::vector<char>& bytes, uint64_t end, uint64_t* at, std::string* text) {
  for (uint64_t i = *at; i < end; ++i) {
    if (bytes[i] == '\0') {
      text->assign(bytes.data() + *at, i - *at);
      *at = i + 1;
      return true;
    }
    if (bytes[i] < ' ' || bytes[i] > '~') return false;
  }
  return false;
}

NoteResult parse_descriptor(const std::vector<char>& bytes, uint64_t from, uint64_t end) {
  if (end - from < kFixedBytes) return {std::nullopt, "its nsp note is too short"};
  Note note;
  std::memcpy(&note.abi_class, &bytes[from], sizeof(uint32_t));
  std::memcpy(&note.abi_major, &bytes[from + 4], sizeof(uint32_t));
  std::memcpy(&note.abi_minor, &bytes[from + 8], sizeof(uint32_t));
  std::memcpy(&note.cpu_features, &bytes[from + 16], sizeof(uint64_t));
  uint64_t at = from + kFixedBytes;
  for (std::string* text : {&note.kind, &note.name, &note.version, &note.stamp}) {
    if (!take_string(bytes, end, &at, text)) return {std::nullopt, "the texts of its nsp note are damaged"};
  }
  return {note, ""};
}

uint64_t rounded(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

// The nsp note among the notes of one segment; neither note nor reason if there is none.
NoteResult find_note(const std::vector<char>& bytes, uint64_t alignment) {
  for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes.size();) {
    Elf64_Nhdr header;
    std::memcpy(&header, &bytes[at], sizeof header);
    const uint64_t name = at + sizeof header;
    const uint64_t descriptor = rounded(name + header.n_namesz, alignment);
    const uint64_t end = descriptor + header.n_descsz;
    if (end > bytes.size()) return {std::nullopt, "its notes are damaged"};
    if (header.n_namesz == sizeof "nsp" && std::memcmp(&bytes[name], "nsp", sizeof "nsp") == 0 && header.n_type == NSP_NOTE_TYPE) {
      return parse_descriptor(bytes, descriptor, end);
    }
    at = rounded(end, alignment);
  }
  return {};
}

}  // namespace

NoteResult read_note(const std::string& path) {
  const File file(path);
  if (!file.error().empty()) return {std::nullopt, file.error()};
  Elf64_Ehdr header;
  if (!file.read(0, &header, sizeof header)) return {std::nullopt, "it is too short for an ELF file"};
  if (const std::string reason = check_header(header); !reason.empty()) return {std::nullopt, reason};
  uint64_t looked_at = 0;
  std::string damage;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const uint64_t offset = header.e_phoff + i * sizeof segment;
    if (offset < header.e_phoff || !file.read(offset, &segment, sizeof segment))
      return {std::nullopt, "it ends within its program headers"};
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_filesz > kMostNoteBytes - looked_at) return {std::nullopt, "it has more than 64 KiB of notes"};
    looked_at += segment.p_filesz;
    std::vector<char> bytes(segment.p_filesz);
    if (!file.read(segment.p_offset, bytes.data(), bytes.size())) return {std::nullopt, "it ends within its notes"};
    NoteResult found = find_note(bytes, segment.p_align == 8 ? 8 : 4);
    if (found.note) return found;
    if (!found.reason.empty()) damage = found.reason;
  }
  return {std::nullopt, damage.empty() ? "it has no nsp note" : damage};
}

}  // namespace nsp
