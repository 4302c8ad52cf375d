#include "io/piece_index.hpp"

#include <algorithm>

namespace nsp {
namespace {

bool storable_name(const std::string& name) {
  if (name.size() < 2 || name.front() != '/' || name.back() == '/' || name == "/nsp" || name.rfind("/nsp/", 0) == 0) return false;
  for (char c : name) {
    if (c <= ' ' || c > '~' || c == '%') return false;
  }
  for (std::size_t begin = 1; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool storable_shape(const std::vector<int64_t>& shape, int64_t* elements) {
  if (shape.empty() || shape.size() > NSP_MAX_RANK) return false;
  int64_t product = 1;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return false;
  }
  *elements = product;
  return product <= INT64_MAX / 8;  // so that bytes fit as well
}

}  // namespace

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t elements = 0;
  NSP_REQUIRE(storable_shape(shape, &elements), "a stored tensor has one to five dimensions, none negative, and fewer than 2^60 elements");
  return elements;
}

void require_storable(const std::string& name, const std::vector<int64_t>& shape, int64_t offset, int64_t count) {
  NSP_REQUIRE(storable_name(name), "'" + name + "' cannot be the name of a checkpoint tensor");
  const int64_t elements = elements_of(shape);
  NSP_REQUIRE(offset >= 0 && count >= 0 && count <= elements && offset <= elements - count,
              "a piece lies within its tensor '" + name + "'");
}

PieceIndex::PieceIndex(std::vector<PieceRecord> pieces, ErrorKind kind, const std::string& where) : pieces_(std::move(pieces)) {
  auto refuse = [&](const std::string& name, const std::string& why) {
    throw Error(kind,
                where + ": the pieces of tensor '" + name + "' do not fit together. " + why +
                    (kind == ErrorKind::input ? ". Use an earlier checkpoint." : ". Ranks disagree about the plan; please report it."));
  };
  for (const PieceRecord& piece : pieces_) {
    int64_t elements = 0;
    if (!storable_name(piece.name) || !storable_shape(piece.shape, &elements)) refuse(piece.name, "Its name or shape is impossible");
    auto [at, fresh] = tensors_.try_emplace(piece.name, TensorPieces{piece.dtype, piece.shape, elements, {}});
    if (!fresh && (at->second.dtype != piece.dtype || at->second.shape != piece.shape)) refuse(piece.name, "Their shapes or types differ");
    if (piece.offset < 0 || piece.count < 0 || piece.count > elements || piece.offset > elements - piece.count || piece.rank < 0)
      refuse(piece.name, "A piece lies outside the tensor");
  }
  std::erase_if(pieces_, [this](const PieceRecord& piece) { return piece.count == 0 && tensors_.at(piece.name).elements > 0; });
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].count > 0) tensors_.at(pieces_[i].name).pieces.push_back(i);
  }
  for (auto& [name, tensor] : tensors_) {
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [this](std::size_t a, std::size_t b) { return pieces_[a].offset < pieces_[b].offset; });
    for (std::size_t i = 1; i < tensor.pieces.size(); ++i) {
      const PieceRecord& before = pieces_[tensor.pieces[i - 1]];
      const PieceRecord& piece = pieces_[tensor.pieces[i]];
      if (before.offset + before.count > piece.offset)
        refuse(name, "Those of ranks " + std::to_string(before.rank) + " and " + std::to_string(piece.rank) + " overlap at element " +
                         std::to_string(piece.offset));
    }
  }
}

std::string PieceIndex::first_gap() const {
  for (const auto& [name, tensor] : tensors_) {
    int64_t at = 0;
    for (std::size_t i : tensor.pieces) {
      if (pieces_[i].offset != at) break;
      at += pieces_[i].count;
    }
    if (at < tensor.elements)
      return "tensor '" + name + "' lacks elements from " + std::to_string(at) + " of " + std::to_string(tensor.elements);
  }
  return {};
}

}  // namespace nsp
