// The facts that a module states about itself in its ELF note, read from the file alone.
//
// The file is neither mapped nor run: whatever it holds, no code of it has been executed after this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace nsp {

struct Note {
  uint32_t abi_class = 0, abi_major = 0, abi_minor = 0;
  uint64_t cpu_features = 0;
  std::string kind, name, version, stamp;  // printable ASCII
};

struct NoteResult {
  std::optional<Note> note;
  std::string reason;  // why there is none: "it is not an ELF file"
};

// Never throws for what a file holds. Follows PT_NOTE program headers, so that a stripped file is read as well; at most
// 64 KiB of notes are looked at.
NoteResult read_note(const std::string& path);

}  // namespace nsp
