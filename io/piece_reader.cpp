#include "io/piece_reader.hpp"

#include <algorithm>
#include <cstring>

#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

constexpr int64_t block_elements = int64_t{1} << 20;  // read at a time where only the checksum is wanted

std::string range_text(int64_t lo, int64_t count) {
  std::string text = "[";
  text.append(std::to_string(lo)).append(", ").append(std::to_string(lo + count)).append(")");
  return text;
}

}  // namespace

PieceReader::PieceReader(int64_t step, std::string where, Attributes attributes, PieceIndex index)
    : step_(step),
      where_(std::move(where)),
      attributes_(std::move(attributes)),
      index_(std::move(index)),
      verified_(index_.pieces().size()) {}

std::string PieceReader::describe(const PieceRecord& piece) const {
  return "piece " + range_text(piece.offset, piece.count) + " of '" + piece.name + "' in shard " + file_of(piece);
}

const TensorPieces& PieceReader::tensor(const std::string& name) const {
  const auto at = index_.tensors().find(name);
  if (at == index_.tensors().end())
    throw Error(ErrorKind::input,
                "checkpoint " + where_ + " has no tensor '" + name +
                    "'. It was written by a run with another model, optimizer or plug-ins. Resume with the settings of that run.");
  return at->second;
}

void PieceReader::get(const std::string& name, DType dtype, int64_t offset, int64_t count, void* out) {
  const TensorPieces& whole = tensor(name);
  if (whole.dtype != dtype)
    throw Error(ErrorKind::input, "tensor '" + name + "' of checkpoint " + where_ + " is " + name_of(whole.dtype) + ". " + name_of(dtype) +
                                      " was asked for. Resume with the settings of the run that wrote it.");
  if (offset < 0 || count < 0 || count > whole.elements || offset > whole.elements - count)
    throw Error(ErrorKind::input, "elements " + range_text(offset, count) + " of tensor '" + name + "' of checkpoint " + where_ +
                                      " were asked for. It has " + std::to_string(whole.elements) +
                                      ". Resume with the model of the run that wrote it.");
  const int64_t end = offset + count;
  int64_t at = offset;
  auto first = std::partition_point(whole.pieces.begin(), whole.pieces.end(),
                                    [&](std::size_t i) { return pieces()[i].offset + pieces()[i].count <= offset; });
  for (auto i = first; i != whole.pieces.end() && at < end && pieces()[*i].offset <= at; ++i) {
    const PieceRecord& piece = pieces()[*i];
    const int64_t hi = std::min(end, piece.offset + piece.count);
    read_checked(*i, at - piece.offset, hi - at, static_cast<char*>(out) + (at - offset) * static_cast<int64_t>(size_of(dtype)));
    at = hi;
  }
  if (at < end)
    throw Error(ErrorKind::input, "checkpoint " + where_ + " lacks elements of tensor '" + name + "' from " + std::to_string(at) +
                                      ". A piece was never written or its record is gone. Use an earlier checkpoint.");
}

void PieceReader::read_checked(std::size_t i, int64_t lo, int64_t count, char* out) {
  const PieceRecord& piece = pieces()[i];
  if (verified_[i]) return read(piece, lo, count, out);
  const auto size = static_cast<int64_t>(size_of(piece.dtype));
  XxHash64 hash;
  if (count == piece.count) {
    read(piece, 0, count, out);
    hash.add(out, static_cast<std::size_t>(count * size));
  } else {
    std::vector<char> block(static_cast<std::size_t>(std::min(block_elements, piece.count) * size));
    for (int64_t at = 0; at < piece.count; at += block_elements) {
      const int64_t n = std::min(block_elements, piece.count - at);
      read(piece, at, n, block.data());
      hash.add(block.data(), static_cast<std::size_t>(n * size));
      const int64_t from = std::max(at, lo), to = std::min(at + n, lo + count);
      if (from < to) std::memcpy(out + (from - lo) * size, block.data() + (from - at) * size, static_cast<std::size_t>((to - from) * size));
    }
  }
  if (hash.value() != piece.checksum)
    throw Error(ErrorKind::input,
                "checkpoint " + where_ + " is damaged: " + describe(piece) +
                    " is not what was written. Its checksum differs. Use an earlier checkpoint, and check the file system.");
  verified_[i] = true;
}

std::string PieceReader::verify() {
  constexpr int max_lines = 8;
  std::string found = index_.first_gap();
  int lines = found.empty() ? 0 : 1;
  for (std::size_t i = 0; i < pieces().size(); ++i) {
    try {
      verified_[i] = false;  // asked for now, whatever was read before
      read_checked(i, 0, 0, nullptr);
    } catch (const Error& error) {
      if (++lines <= max_lines) found += (found.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (lines > max_lines) found += "\nand " + std::to_string(lines - max_lines) + " more";
  return found;
}

}  // namespace nsp
