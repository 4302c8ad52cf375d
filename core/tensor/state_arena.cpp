#include "core/tensor/state_arena.hpp"

namespace nsp {
namespace {

constexpr int64_t alignment = 256;  // bytes; every range starts on it, so that vector loads stay aligned

int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

Range held_range(const ParamTable& table, const StateDecl& decl, const std::vector<Range>& owned, int segment) {
  return decl.extent == Extent::full ? table.whole(segment) : owned[static_cast<std::size_t>(segment)];
}

int64_t storage_elements(const ParamTable& table, const StateDecl& decl, Range held) {
  return decl.extent == Extent::full ? table.segment(held.segment).storage : held.size();
}

}  // namespace

StateArena::StateArena(Device& device, Stream& stream, const ParamTable& table, std::vector<StateDecl> decls, std::vector<Range> owned)
    : decls_(std::move(decls)), owned_(std::move(owned)) {
  NSP_REQUIRE(owned_.size() == table.segments().size(), "one owned range per segment");
  for (const StateDecl& decl : decls_) {
    std::vector<Place> places;
    int64_t bytes = 0;
    for (std::size_t s = 0; s < owned_.size(); ++s) {
      Place place;
      place.range = held_range(table, decl, owned_, static_cast<int>(s));
      place.offset = bytes;
      place.storage = storage_elements(table, decl, place.range);
      bytes += aligned(place.storage * static_cast<int64_t>(size_of(decl.dtype)));
      places.push_back(place);
    }
    places_.push_back(std::move(places));
    buffers_.emplace_back(device, bytes, MemoryKind::device, decl.kind);
    stream.fill(buffers_.back().data(), 0, bytes);
  }
}

TensorView StateArena::view(StateId state, Range range) const {
  const Place& place = places_.at(static_cast<std::size_t>(state)).at(static_cast<std::size_t>(range.segment));
  if (range.empty()) return TensorView(nullptr, decls_[static_cast<std::size_t>(state)].dtype, {0});
  NSP_REQUIRE(range.lo >= place.range.lo && range.hi <= place.range.hi,
              "the range of " + decls_[static_cast<std::size_t>(state)].kind + " is held by this rank");
  const DType dtype = decls_[static_cast<std::size_t>(state)].dtype;
  char* base = static_cast<char*>(buffers_[static_cast<std::size_t>(state)].data()) + place.offset;
  return TensorView(base + (range.lo - place.range.lo) * static_cast<int64_t>(size_of(dtype)), dtype, {range.size()});
}

TensorView StateArena::storage(StateId state, int segment) const {
  const Place& place = places_.at(static_cast<std::size_t>(state)).at(static_cast<std::size_t>(segment));
  char* base = static_cast<char*>(buffers_[static_cast<std::size_t>(state)].data()) + place.offset;
  return TensorView(base, decls_[static_cast<std::size_t>(state)].dtype, {place.storage});
}

Range StateArena::held(StateId state, int segment) const {
  return places_.at(static_cast<std::size_t>(state)).at(static_cast<std::size_t>(segment)).range;
}

StateId StateArena::find(const std::string& kind) const {
  for (std::size_t i = 0; i < decls_.size(); ++i)
    if (decls_[i].kind == kind) return static_cast<StateId>(i);
  return -1;
}

}  // namespace nsp
