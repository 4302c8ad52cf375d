// The manifest of a checkpoint, and the piece tables that ranks send each other. A manifest whose seal is wrong must never reach
// HDF5, which is not made for damaged files (io/file_seal.hpp), so files are fuzzed as they are and never given a right seal.
#include "io/manifest.hpp"

#include "nsp/error.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

void read_file(const uint8_t* data, std::size_t size) {
  const nsp::fuzz::MemoryFile file(data, size);
  nsp::read_manifest(file.path());
}

void read_table(const uint8_t* data, std::size_t size) {
  const nsp::PieceIndex index(nsp::deserialize_pieces(reinterpret_cast<const char*>(data), size), nsp::ErrorKind::input, "fuzz");
  index.first_gap();
  const std::vector<char> again = nsp::serialize(index.pieces());
  if (nsp::deserialize_pieces(again.data(), again.size()).size() != index.pieces().size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    data[0] % 2 == 0 ? read_file(data + 1, size - 1) : read_table(data + 1, size - 1);
  } catch (const nsp::Error& error) {
    const nsp::ErrorKind kind = error.kind();
    if (kind != nsp::ErrorKind::input && kind != nsp::ErrorKind::internal && kind != nsp::ErrorKind::inconsistent) throw;
  }
  return 0;
}
