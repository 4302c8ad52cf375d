// The note of a module, read from files that may be anything.
#include "core/plugin/note.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const nsp::fuzz::MemoryFile file(data, size);
  const nsp::NoteResult result = nsp::read_note(file.path());
  if (!result.note && result.reason.empty()) __builtin_trap();
  return 0;
}
