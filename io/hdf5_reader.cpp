#include "io/hdf5_reader.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "io/durable.hpp"
#include "io/step_folder.hpp"

namespace nsp {
namespace {

constexpr std::size_t most_open_shards = 64;  // well below any limit of open files
constexpr int64_t bytes_per_read = int64_t{256} << 20;

}  // namespace

Hdf5Reader::Hdf5Reader(const std::string& folder) : Hdf5Reader(folder, read_manifest(folder + "/" + manifest_name)) {}

Hdf5Reader::Hdf5Reader(const std::string& folder, Manifest manifest)
    : PieceReader(manifest.step, folder, std::move(manifest.attributes),
                  PieceIndex(std::move(manifest.pieces), ErrorKind::input, "checkpoint " + folder)),
      folder_(folder),
      run_(std::move(manifest.run)) {}

std::string Hdf5Reader::file_of(const PieceRecord& piece) const {
  return folder_ + "/" + shard_name(run_, step(), piece.rank);
}

hid_t Hdf5Reader::shard(const PieceRecord& piece, const h5::Check& check) {
  if (const auto at = open_.find(piece.rank); at != open_.end()) return at->second.get();
  const std::string path = file_of(piece);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    check.fail(errno == ENOENT ? "The shard is missing" : "The shard cannot be read: " + errno_text(errno));
  if (open_.size() >= most_open_shards) open_.clear();
  return open_.emplace(piece.rank, h5::open_to_read(path, check)).first->second.get();
}

void Hdf5Reader::read(const PieceRecord& piece, int64_t lo, int64_t count, void* out) {
  if (count == 0) return;
  const h5::Check check(ErrorKind::input, "checkpoint " + folder_ + " is damaged: " + describe(piece) + " cannot be read",
                        "Use an earlier checkpoint, and check the file system.");
  h5::Session session;
  const hid_t type = h5::type_of(piece.dtype);
  const h5::Id set(check(H5Dopen2(shard(piece, check), piece_path(piece).c_str(), H5P_DEFAULT)), H5Dclose);
  const h5::Id stored(check(H5Dget_type(set.get())), H5Tclose);
  const h5::Id space(check(H5Dget_space(set.get())), H5Sclose);
  if (check(H5Tequal(stored.get(), type)) == 0 || check(H5Sget_simple_extent_ndims(space.get())) != 1 ||
      check(H5Sget_simple_extent_npoints(space.get())) != piece.count)
    check.fail("It has another type or length than the manifest says");
  const int64_t element = static_cast<int64_t>(size_of(piece.dtype)), step = bytes_per_read / element;
  for (int64_t at = 0; at < count; at += step) {
    const auto start = static_cast<hsize_t>(lo + at), n = static_cast<hsize_t>(std::min(step, count - at));
    const h5::Id memory(check(H5Screate_simple(1, &n, nullptr)), H5Sclose);
    check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &n, nullptr));
    check(H5Dread(set.get(), type, memory.get(), space.get(), H5P_DEFAULT, static_cast<char*>(out) + at * element));
  }
}

}  // namespace nsp
