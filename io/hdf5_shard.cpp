#include "io/hdf5_shard.hpp"

#include <unistd.h>

#include <algorithm>

#include "io/durable.hpp"
#include "io/manifest.hpp"
#include "io/piece_index.hpp"
#include "io/step_folder.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

// Bytes per call: some MPI-IO and network file systems fail beyond 1 or 2 GiB.
constexpr int64_t bytes_per_write = int64_t{256} << 20;

// What a shard takes besides its data: HDF5 spends about 1.5 KiB on each piece.
int64_t reservation(int64_t bytes) {
  return bytes + bytes / 100 + (int64_t{64} << 10);
}

}  // namespace

Hdf5Shard::Hdf5Shard(std::string folder, int64_t step, int rank, const std::string& run, int64_t bytes)
    : folder_(std::move(folder)),
      rank_(rank),
      file_(folder_ + "/" + shard_name(run, step, rank) + unfinished_suffix, bytes > 0 ? reservation(bytes) : 0) {}

Hdf5Shard::~Hdf5Shard() = default;

void Hdf5Shard::put(const std::string& name, DType dtype, const std::vector<int64_t>& shape, int64_t offset, const void* data,
                    int64_t count) {
  NSP_REQUIRE(!finished_, "nothing is put into a finished shard");
  require_storable(name, shape, offset, count);
  PieceRecord piece{name, dtype, shape, offset, count, rank_, xxhash64(data, static_cast<std::size_t>(count) * size_of(dtype))};
  if (count > 0) {
    write_piece(piece, data);
    any_data_ = true;
  }
  pieces_.push_back(std::move(piece));
}

void Hdf5Shard::write_piece(const PieceRecord& piece, const void* data) {
  h5::Session session;
  const h5::Check& check = file_.check();
  const hid_t type = h5::type_of(piece.dtype);
  const auto size = static_cast<hsize_t>(piece.count);
  const h5::Id space(check(H5Screate_simple(1, &size, nullptr)), H5Sclose);
  const h5::Id links = h5::creates_groups(check);
  const h5::Id properties(check(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  check(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER));  // every element is written below
  h5::Id set(check(H5Dcreate2(file_.id(), piece_path(piece).c_str(), type, space.get(), links.get(), properties.get(), H5P_DEFAULT)),
             H5Dclose);
  h5::write_attribute(set.get(), "global_shape", piece.shape, check);
  h5::write_attribute(set.get(), "offset", std::vector<int64_t>{piece.offset}, check);
  h5::write_attribute(set.get(), "dtype", name_of(piece.dtype), check);
  const int64_t element = static_cast<int64_t>(size_of(piece.dtype)), step = bytes_per_write / element;
  for (int64_t at = 0; at < piece.count; at += step) {
    const auto start = static_cast<hsize_t>(at), n = static_cast<hsize_t>(std::min(step, piece.count - at));
    const h5::Id memory(check(H5Screate_simple(1, &n, nullptr)), H5Sclose);
    check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &n, nullptr));
    check(H5Dwrite(set.get(), type, memory.get(), space.get(), H5P_DEFAULT, static_cast<const char*>(data) + at * element));
  }
  check(H5Dclose(set.release()));  // may write; a full disk must not pass unseen
}

std::vector<PieceRecord> Hdf5Shard::finish() {
  NSP_REQUIRE(!finished_, "a shard is finished once");
  file_.finish();
  finished_ = true;
  if (any_data_)
    sync_directory(folder_);
  else
    remove_quietly(file_.path());  // a rank without data has no shard
  return std::move(pieces_);
}

}  // namespace nsp
