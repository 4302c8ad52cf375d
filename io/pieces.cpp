// PieceRecords as bytes: little-endian, lengths before contents, every read checked against the end.
#include <bit>
#include <cstring>
#include <type_traits>

#include "nsp/checkpoint_store.hpp"

namespace nsp {
namespace {

static_assert(std::endian::native == std::endian::little, "piece records travel as little-endian bytes");

constexpr uint32_t magic = 0x4543504eU;  // "NPCE"

void append(std::vector<char>& out, const void* data, std::size_t bytes) {
  const std::size_t at = out.size();
  out.resize(at + bytes);
  std::memcpy(out.data() + at, data, bytes);
}
template <class T>
void append(std::vector<char>& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  append(out, &value, sizeof value);
}

class Cursor {
 public:
  Cursor(const char* data, std::size_t bytes) : at_(data), left_(bytes) {}
  const char* take(std::size_t bytes) {
    if (bytes > left_) damaged("they end too early");
    const char* p = at_;
    at_ += bytes, left_ -= bytes;
    return p;
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::size_t left() const noexcept { return left_; }
  [[noreturn]] static void damaged(const std::string& why) {
    throw Error(ErrorKind::input, "a list of checkpoint pieces cannot be read. Its bytes are damaged: " + why +
                                      ". Use an earlier checkpoint; if this came from another rank, check the network.");
  }

 private:
  const char* at_;
  std::size_t left_;
};

PieceRecord take_piece(Cursor& in) {
  PieceRecord piece;
  const auto name_bytes = in.take<uint32_t>();
  piece.name.assign(in.take(name_bytes), name_bytes);
  const auto dtype = in.take<int32_t>();
  piece.dtype = static_cast<DType>(dtype);
  if (size_of(piece.dtype) == 0) Cursor::damaged("element type " + std::to_string(dtype) + " is unknown");
  const auto rank = in.take<uint32_t>();
  if (rank > NSP_MAX_RANK) Cursor::damaged("a tensor of " + std::to_string(rank) + " dimensions");
  for (uint32_t d = 0; d < rank; ++d) piece.shape.push_back(in.take<int64_t>());
  piece.offset = in.take<int64_t>();
  piece.count = in.take<int64_t>();
  piece.rank = in.take<int32_t>();
  piece.checksum = in.take<uint64_t>();
  return piece;
}

}  // namespace

std::vector<char> serialize(const std::vector<PieceRecord>& pieces) {
  std::vector<char> out;
  append(out, magic);
  append(out, static_cast<uint64_t>(pieces.size()));
  for (const PieceRecord& piece : pieces) {
    append(out, static_cast<uint32_t>(piece.name.size()));
    append(out, piece.name.data(), piece.name.size());
    append(out, static_cast<int32_t>(piece.dtype));
    append(out, static_cast<uint32_t>(piece.shape.size()));
    for (int64_t size : piece.shape) append(out, size);
    append(out, piece.offset);
    append(out, piece.count);
    append(out, static_cast<int32_t>(piece.rank));
    append(out, piece.checksum);
  }
  return out;
}

std::vector<PieceRecord> deserialize_pieces(const char* data, std::size_t bytes) {
  Cursor in(data, bytes);
  if (in.take<uint32_t>() != magic) Cursor::damaged("they do not start as such a list");
  const auto count = in.take<uint64_t>();
  if (count > in.left()) Cursor::damaged("more pieces are announced than there are bytes");
  std::vector<PieceRecord> pieces;
  for (uint64_t i = 0; i < count; ++i) pieces.push_back(take_piece(in));
  if (in.left() != 0) Cursor::damaged("bytes are left over");
  return pieces;
}

}  // namespace nsp
