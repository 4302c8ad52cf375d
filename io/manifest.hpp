// manifest.h5: what makes a checkpoint exist. The layout is described in docs/checkpoint_format.md.
#pragma once

#include <string>
#include <vector>

#include "io/h5_output.hpp"
#include "io/piece_index.hpp"
#include "nsp/checkpoint_store.hpp"

namespace nsp {

struct Manifest {
  int64_t step = 0;
  std::string run;
  std::string written;  // UTC, "2026-01-31T12:00:00Z"
  Attributes attributes;
  std::vector<PieceRecord> pieces;
};

// The data set of a piece in its shard: "<name>/<offset>".
std::string piece_path(const PieceRecord& piece);
// Writes tables, attributes and, for every tensor of the index, a virtual data set over the shards. manifest.pieces is not read:
// the index holds them. Does not finish the file.
void write_manifest(h5::OutputFile& file, const Manifest& manifest, const PieceIndex& index);
// Error(input) if the file is missing, torn or damaged (its own checksum is compared).
Manifest read_manifest(const std::string& path);

}  // namespace nsp
