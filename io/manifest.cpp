#include "io/manifest.hpp"

#include <sys/stat.h>

#include <map>

#include "io/boxes.hpp"
#include "io/file_seal.hpp"
#include "io/step_folder.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

constexpr int64_t format_version = 2;
constexpr const char* format_name = "nsp checkpoint";
const std::string tensors = "/nsp/tensors/", piece_table = "/nsp/pieces/", shards = "/nsp/shards/", texts = "/nsp/attributes/";

// Keys become names of data sets, in which HDF5 gives '/' and a lone '.' a meaning.
std::string escaped(const std::string& key) {
  std::string name;
  for (char c : key) {
    if (c == '/')
      name += "%2F";
    else if (c == '%')
      name += "%25";
    else if (c == '.' && key.find_first_not_of('.') == std::string::npos)
      name += "%2E";
    else
      name += c;
  }
  return name;
}
std::string unescaped(const std::string& name) {
  std::string key;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string code = name.substr(i, 3);
    const char c = code == "%2F" ? '/' : code == "%25" ? '%' : code == "%2E" ? '.' : '\0';
    key += c != '\0' ? c : name[i];
    if (c != '\0') i += 2;
  }
  return key;
}

// Over everything that nsp itself reads from a manifest.
uint64_t checksum_of(const Manifest& m, const std::vector<PieceRecord>& pieces) {
  XxHash64 hash;
  auto feed = [&hash](const std::string& text) {
    const uint64_t bytes = text.size();
    hash.add(&bytes, sizeof bytes);
    hash.add(text.data(), text.size());
  };
  hash.add(&m.step, sizeof m.step);
  feed(m.run);
  feed(m.written);
  for (const auto& [key, text] : m.attributes) feed(key), feed(text);
  const std::vector<char> records = serialize(pieces);
  hash.add(records.data(), records.size());
  return hash.value();
}

// Tensors by name and pieces as columns, so that a reader without nsp can use them (numpy: five arrays).
void write_tables(hid_t file, const PieceIndex& index, const h5::Check& check) {
  std::vector<std::string> names, dtypes;
  std::vector<int64_t> shapes;
  std::map<std::string, int64_t> row_of;
  for (const auto& [name, tensor] : index.tensors()) {
    row_of[name] = static_cast<int64_t>(names.size());
    names.push_back(name);
    dtypes.emplace_back(name_of(tensor.dtype));
    for (std::size_t d = 0; d < NSP_MAX_RANK; ++d) shapes.push_back(d < tensor.shape.size() ? tensor.shape[d] : -1);
  }
  h5::write_texts(file, tensors + "name", names, check);
  h5::write_texts(file, tensors + "dtype", dtypes, check);
  h5::write_column(file, tensors + "shape", shapes, check);
  std::vector<int64_t> tensor, offset, count, rank, checksum;
  for (const PieceRecord& piece : index.pieces()) {
    tensor.push_back(row_of.at(piece.name));
    offset.push_back(piece.offset);
    count.push_back(piece.count);
    rank.push_back(piece.rank);
    checksum.push_back(static_cast<int64_t>(piece.checksum));
  }
  h5::write_column(file, piece_table + "tensor", tensor, check);
  h5::write_column(file, piece_table + "offset", offset, check);
  h5::write_column(file, piece_table + "count", count, check);
  h5::write_column(file, piece_table + "rank", rank, check);
  h5::write_column(file, piece_table + "checksum", checksum, check);
}

void write_shard_names(hid_t file, const Manifest& manifest, const PieceIndex& index, const h5::Check& check) {
  std::map<int64_t, std::string> names;
  for (const PieceRecord& piece : index.pieces()) {
    if (piece.count > 0) names.try_emplace(piece.rank, shard_name(manifest.run, manifest.step, piece.rank));
  }
  std::vector<int64_t> ranks;
  std::vector<std::string> files;
  for (const auto& [rank, name] : names) ranks.push_back(rank), files.push_back(name);
  h5::write_column(file, shards + "rank", ranks, check);
  h5::write_texts(file, shards + "name", files, check);
}

// What a reader of the virtual data set sees where a shard is lost: a value that training does not write.
void set_fill(hid_t properties, DType dtype, const h5::Check& check) {
  const float nan32 = __builtin_nanf("");
  const double nan64 = __builtin_nan("");
  const uint16_t nan16 = 0x7fc0;
  const int32_t least32 = INT32_MIN;
  const int64_t least64 = INT64_MIN;
  const uint8_t most8 = UINT8_MAX;
  const void* value = nullptr;
  switch (dtype) {
    case DType::f32:
      value = &nan32;
      break;
    case DType::f64:
      value = &nan64;
      break;
    case DType::bf16:
      value = &nan16;
      break;
    case DType::i32:
      value = &least32;
      break;
    case DType::i64:
      value = &least64;
      break;
    case DType::u8:
      value = &most8;
      break;
  }
  check(H5Pset_fill_value(properties, h5::type_of(dtype), value));
}

void map_piece(hid_t properties, hid_t space, const TensorPieces& tensor, const PieceRecord& piece, const std::string& shard,
               const h5::Check& check) {
  const hsize_t count = static_cast<hsize_t>(piece.count);
  const h5::Id source(check(H5Screate_simple(1, &count, nullptr)), H5Sclose);
  hsize_t from = 0;
  for (const Box& box : boxes_of(tensor.shape, piece.offset, piece.count)) {
    const std::vector<hsize_t> start(box.start.begin(), box.start.end()), size(box.count.begin(), box.count.end());
    const hsize_t n = static_cast<hsize_t>(box.elements);
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr));
    check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, &from, nullptr, &n, nullptr));
    check(H5Pset_virtual(properties, space, shard.c_str(), piece_path(piece).c_str(), source.get()));
    from += n;
  }
}

void write_view(hid_t file, const std::string& name, const TensorPieces& tensor, const Manifest& manifest, const PieceIndex& index,
                const h5::Check& check) {
  const std::vector<hsize_t> shape(tensor.shape.begin(), tensor.shape.end());
  const h5::Id space(check(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr)), H5Sclose);
  const h5::Id properties(check(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  set_fill(properties.get(), tensor.dtype, check);
  for (std::size_t i : tensor.pieces) {
    const PieceRecord& piece = index.pieces()[i];
    map_piece(properties.get(), space.get(), tensor, piece, shard_name(manifest.run, manifest.step, piece.rank), check);
  }
  check(H5Sselect_all(space.get()));
  const h5::Id links = h5::creates_groups(check);
  const h5::Id set(
      check(H5Dcreate2(file, name.c_str(), h5::type_of(tensor.dtype), space.get(), links.get(), properties.get(), H5P_DEFAULT)), H5Dclose);
  h5::write_attribute(set.get(), "dtype", name_of(tensor.dtype), check);
}

DType dtype_named(const std::string& name, const h5::Check& check) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32, DType::u8, DType::i64}) {
    if (name == name_of(dtype)) return dtype;
  }
  check.fail("element type '" + name + "' is unknown");
}

std::vector<PieceRecord> read_pieces(hid_t file, int64_t limit, const h5::Check& check) {
  const auto names = h5::read_texts(file, tensors + "name", limit, check), dtypes = h5::read_texts(file, tensors + "dtype", limit, check);
  const auto shapes = h5::read_column(file, tensors + "shape", limit, check);
  const auto tensor = h5::read_column(file, piece_table + "tensor", limit, check),
             offset = h5::read_column(file, piece_table + "offset", limit, check),
             count = h5::read_column(file, piece_table + "count", limit, check),
             rank = h5::read_column(file, piece_table + "rank", limit, check),
             checksum = h5::read_column(file, piece_table + "checksum", limit, check);
  const std::size_t n = tensor.size();
  if (dtypes.size() != names.size() || shapes.size() != names.size() * NSP_MAX_RANK || offset.size() != n || count.size() != n ||
      rank.size() != n || checksum.size() != n)
    check.fail("its tables have different lengths");
  std::vector<PieceRecord> pieces;
  for (std::size_t i = 0; i < n; ++i) {
    if (tensor[i] < 0 || tensor[i] >= static_cast<int64_t>(names.size()) || rank[i] < 0 || rank[i] > INT32_MAX)
      check.fail("a piece of no tensor or rank");
    const auto row = static_cast<std::size_t>(tensor[i]);
    PieceRecord piece{names[row],
                      dtype_named(dtypes[row], check),
                      {},
                      offset[i],
                      count[i],
                      static_cast<int>(rank[i]),
                      static_cast<uint64_t>(checksum[i])};
    for (std::size_t d = 0; d < NSP_MAX_RANK && shapes[row * NSP_MAX_RANK + d] >= 0; ++d)
      piece.shape.push_back(shapes[row * NSP_MAX_RANK + d]);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

Attributes read_texts_of(hid_t file, int64_t limit, const h5::Check& check) {
  const h5::Id group(check(H5Gopen2(file, "/nsp/attributes", H5P_DEFAULT)), H5Gclose);
  std::vector<std::string> names;
  check(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names));
  Attributes attributes;
  for (const std::string& name : names) attributes[unescaped(name)] = h5::read_text(file, texts + name, limit, check);
  return attributes;
}

}  // namespace

std::string piece_path(const PieceRecord& piece) {
  return piece.name + "/" + std::to_string(piece.offset);
}

void write_manifest(h5::OutputFile& out, const Manifest& manifest, const PieceIndex& index) {
  h5::Session session;
  const h5::Check& check = out.check();
  const hid_t file = out.id();
  write_tables(file, index, check);
  write_shard_names(file, manifest, index, check);
  {
    const h5::Id links = h5::creates_groups(check);
    const h5::Id group(check(H5Gcreate2(file, "/nsp/attributes", links.get(), H5P_DEFAULT, H5P_DEFAULT)), H5Gclose);
  }
  for (const auto& [key, text] : manifest.attributes) {
    NSP_REQUIRE(!key.empty() && key.find('\0') == std::string::npos && text.find('\0') == std::string::npos,
                "checkpoint attributes are texts");
    h5::write_text(file, texts + escaped(key), text, check);
  }
  for (const auto& [name, tensor] : index.tensors()) write_view(file, name, tensor, manifest, index, check);
  const h5::Id root(check(H5Gopen2(file, "/nsp", H5P_DEFAULT)), H5Gclose);
  h5::write_attribute(root.get(), "format", format_name, check);
  h5::write_attribute(root.get(), "format_version", std::vector<int64_t>{format_version}, check);
  h5::write_attribute(root.get(), "step", std::vector<int64_t>{manifest.step}, check);
  h5::write_attribute(root.get(), "run", manifest.run, check);
  h5::write_attribute(root.get(), "written", manifest.written, check);
  h5::write_attribute(root.get(), "checksum", "xxh64", check);
  h5::write_attribute(root.get(), "table_checksum", std::vector<int64_t>{static_cast<int64_t>(checksum_of(manifest, index.pieces()))},
                      check);
}

Manifest read_manifest(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw Error(ErrorKind::input,
                "there is no checkpoint manifest " + path + ". The checkpoint was never completed or was removed. Use another step.");
  const h5::Check check(ErrorKind::input, "checkpoint manifest " + path + " is torn or damaged", "Use an earlier checkpoint.");
  check_seal(path, check);
  h5::Session session;
  const h5::Id file = h5::open_to_read(path, check);
  const h5::Id root(check(H5Gopen2(file.get(), "/nsp", H5P_DEFAULT)), H5Gclose);
  if (h5::read_text_attribute(root.get(), "format", check) != format_name) check.fail("it is no manifest of nsp");
  const auto one = [&](const char* name) {
    const std::vector<int64_t> values = h5::read_attribute(root.get(), name, check);
    if (values.size() != 1) check.fail(std::string("attribute ") + name + " is not one number");
    return values[0];
  };
  if (const int64_t version = one("format_version"); version != format_version)
    throw Error(ErrorKind::input, "checkpoint manifest " + path + " has format version " + std::to_string(version) +
                                      ". This nsp reads version " + std::to_string(format_version) + ". Use the nsp that wrote it.");
  Manifest manifest;
  manifest.step = one("step");
  manifest.run = h5::read_text_attribute(root.get(), "run", check);
  manifest.written = h5::read_text_attribute(root.get(), "written", check);
  manifest.attributes = read_texts_of(file.get(), info.st_size, check);
  manifest.pieces = read_pieces(file.get(), info.st_size, check);
  if (static_cast<uint64_t>(one("table_checksum")) != checksum_of(manifest, manifest.pieces)) check.fail("its own checksum differs");
  return manifest;
}

}  // namespace nsp
