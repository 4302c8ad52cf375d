// The reader of ELF notes on a sound module, and on several hundred damaged copies of it.
#include "core/plugin/note.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "nsp/abi.h"

namespace nsp {
namespace {

class NoteTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(NSP_SAMPLE_MODULE, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_GT(bytes_.size(), sizeof(Elf64_Ehdr));
    char name[] = "/tmp/nsp_note_XXXXXX";
    close(mkstemp(name));
    path_ = name;
  }
  void TearDown() override { unlink(path_.c_str()); }

  NoteResult read(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read_note(path_);
  }
  // Offset of the first program header of a type whose content holds `text`.
  std::size_t header_with(uint32_t type, const std::string& text) const {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
      Elf64_Phdr segment;
      std::memcpy(&segment, &bytes_[at], sizeof segment);
      if (segment.p_type == type && bytes_.substr(segment.p_offset, segment.p_filesz).find(text) != std::string::npos) return at;
    }
    ADD_FAILURE() << "no such segment";
    return 0;
  }
  std::string bytes_, path_;
};

TEST_F(NoteTest, ReadsWhatTheModuleStates) {
  const NoteResult result = read(bytes_);
  ASSERT_TRUE(result.note) << result.reason;
  EXPECT_EQ(result.note->kind, "optimizer");
  EXPECT_EQ(result.note->name, "good");
  EXPECT_EQ(result.note->version, "1.2.3");
  EXPECT_EQ(result.note->stamp, NSP_STAMP);
  EXPECT_EQ(result.note->abi_class, static_cast<uint32_t>(NSP_ABI_CXX));
  EXPECT_EQ(result.note->abi_major, static_cast<uint32_t>(NSP_ABI_MAJOR));
  EXPECT_EQ(result.note->abi_minor, static_cast<uint32_t>(NSP_ABI_MINOR));
  EXPECT_EQ(result.note->cpu_features, 0u);
}

TEST_F(NoteTest, NeedsNoSectionHeaders) {
  std::string stripped = bytes_;
  Elf64_Ehdr header;
  std::memcpy(&header, stripped.data(), sizeof header);
  std::memset(&stripped[header.e_shoff], 0xff, stripped.size() - header.e_shoff);
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(stripped.data(), &header, sizeof header);
  EXPECT_TRUE(read(stripped).note);
}

TEST_F(NoteTest, ReasonsOfFilesThatAreNoModules) {
  EXPECT_EQ(read_note("/no/such/file").reason, "No such file or directory");
  EXPECT_EQ(read_note("/tmp").reason, "it is not a regular file");
  EXPECT_EQ(read("").reason, "it is too short for an ELF file");
  EXPECT_EQ(read(std::string(1000, 'x')).reason, "it is not an ELF file");
  const auto with = [this](std::size_t at, char value) {
    std::string changed = bytes_;
    changed[at] = value;
    return read(changed).reason;
  };
  EXPECT_EQ(with(EI_CLASS, ELFCLASS32), "it is not a 64-bit ELF file of this byte order");
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_type), ET_REL), "it is not a shared object");
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_machine), 20), "it is built for another processor (ELF machine 20)");
  EXPECT_EQ(with(offsetof(Elf64_Ehdr, e_phentsize), 1), "its program headers are damaged");
  EXPECT_EQ(read(bytes_.substr(0, 80)).reason, "it ends within its program headers");
}

TEST_F(NoteTest, SegmentsOfNotesAreBounded) {
  const std::size_t at = header_with(PT_NOTE, std::string("nsp\0", 4));
  const auto with = [&](std::size_t field, uint64_t value) {
    std::string changed = bytes_;
    std::memcpy(&changed[at + field], &value, sizeof value);
    return read(changed).reason;
  };
  EXPECT_EQ(with(offsetof(Elf64_Phdr, p_filesz), ~uint64_t{0}), "it has more than 64 KiB of notes");
  EXPECT_EQ(with(offsetof(Elf64_Phdr, p_filesz), 65537), "it has more than 64 KiB of notes");
  EXPECT_EQ(with(offsetof(Elf64_Phdr, p_offset), ~uint64_t{0} - 8), "it ends within its notes");
  EXPECT_EQ(with(offsetof(Elf64_Phdr, p_offset), bytes_.size()), "it ends within its notes");
}

TEST_F(NoteTest, LengthsInsideANoteAreBounded) {
  // The descriptor begins 24 bytes before the texts; before it lie the name "nsp" and the header's three words.
  const std::size_t header = bytes_.find("optimizer\0good", 0, 14) - 24 - 4 - sizeof(Elf64_Nhdr);
  for (const std::size_t field : {offsetof(Elf64_Nhdr, n_namesz), offsetof(Elf64_Nhdr, n_descsz)}) {
    for (const uint32_t length : {uint32_t{1} << 12, uint32_t{0xfffffff0}, ~uint32_t{0}}) {
      std::string damaged = bytes_;
      std::memcpy(&damaged[header + field], &length, sizeof length);
      EXPECT_EQ(read(damaged).reason, "its notes are damaged");
    }
  }
  std::string brief = bytes_;
  const uint32_t length = 20;
  std::memcpy(&brief[header + offsetof(Elf64_Nhdr, n_descsz)], &length, sizeof length);
  EXPECT_EQ(read(brief).reason, "its nsp note is too short");
}

TEST_F(NoteTest, TextsMustEndAndBePrintable) {
  const std::size_t stamp = bytes_.find("optimizer\0good", 0, 14);
  ASSERT_NE(stamp, std::string::npos);
  std::string escape = bytes_, endless = bytes_;
  escape[stamp] = '\x1b';
  EXPECT_EQ(read(escape).reason, "the texts of its nsp note are damaged");
  // The four texts end where the descriptor ends: without a NUL there is no end.
  for (std::size_t i = stamp; i < stamp + 15 + 6 + std::strlen(NSP_STAMP) + 1; ++i) {
    if (endless[i] == '\0') endless[i] = 'x';
  }
  EXPECT_FALSE(read(endless).note);
}

// Whatever the bytes, the reader answers: sanitizers watch its bounds, and a note that it gives holds printable text.
TEST_F(NoteTest, DamagedFilesAreAnsweredNotCrashedOn) {
  std::mt19937 random(1);
  const std::size_t note = bytes_.find("optimizer\0good", 0, 14);
  int readable = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = bytes_;
    // Damage where the reader looks: the file's head with the program headers, and around the note.
    const std::size_t from = round % 2 == 0 ? 0 : note - 64, span = round % 2 == 0 ? 1024 : 160;
    for (int i = 0; i < 1 + round % 4; ++i) damaged[from + random() % span] = static_cast<char>(random());
    if (round % 5 == 0) damaged.resize(random() % damaged.size());
    const NoteResult result = read(damaged);
    EXPECT_EQ(result.note.has_value(), result.reason.empty());
    if (!result.note) continue;
    ++readable;
    for (const std::string& text : {result.note->kind, result.note->name, result.note->version, result.note->stamp}) {
      for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~');
    }
  }
  EXPECT_GT(readable, 50) << "some damage does not matter";
  EXPECT_LT(readable, 550);
}

}  // namespace
}  // namespace nsp
