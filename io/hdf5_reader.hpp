// Reads a checkpoint of Hdf5Store: pieces straight from their shards, by full path, never through the manifest's virtual view
// (HDF5 would replace a lost shard by fill values or by a file of the same name in the current directory).
#pragma once

#include <map>

#include "io/h5.hpp"
#include "io/manifest.hpp"
#include "io/piece_reader.hpp"

namespace nsp {

class Hdf5Reader : public PieceReader {
 public:
  // Error(input) if the manifest of this folder is missing, torn or damaged.
  explicit Hdf5Reader(const std::string& folder);

 protected:
  void read(const PieceRecord& piece, int64_t lo, int64_t count, void* out) override;
  std::string file_of(const PieceRecord& piece) const override;

 private:
  Hdf5Reader(const std::string& folder, Manifest manifest);
  hid_t shard(const PieceRecord& piece, const h5::Check& check);

  std::string folder_, run_;
  std::map<int, h5::Id> open_;  // shards by rank
};

}  // namespace nsp
