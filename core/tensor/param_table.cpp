#include "core/tensor/param_table.hpp"

#include <algorithm>

namespace nsp {

int ParamTable::add_segment(const std::string& name) {
  segments_.push_back({name, 0, 0, {}});
  return static_cast<int>(segments_.size()) - 1;
}

int ParamTable::add(const std::string& name, std::vector<int64_t> shape, Role role, Init init, int64_t padded_rows) {
  NSP_REQUIRE(!segments_.empty(), "a parameter belongs to a segment");
  NSP_REQUIRE(index_.count(name) == 0, "parameter names are unique: " + name);
  Segment& segment = segments_.back();
  NSP_REQUIRE(segment.storage == segment.size, "only the last tensor of a segment may be padded: " + name);
  Param param;
  param.name = name;
  param.segment = static_cast<int>(segments_.size()) - 1;
  param.offset = segment.size;
  param.shape = std::move(shape);
  param.role = role;
  param.init = init;
  param.padded_rows = padded_rows;
  const int index = static_cast<int>(params_.size());
  const int64_t n = param.elements();
  segment.size += n;
  segment.storage += n;
  if (padded_rows > 0) segment.storage += (padded_rows - param.shape[0]) * (n / param.shape[0]);
  segment.params.push_back(index);
  index_[name] = index;
  params_.push_back(std::move(param));
  return index;
}

int ParamTable::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? -1 : it->second;
}

int64_t ParamTable::total() const noexcept {
  int64_t n = 0;
  for (const Segment& s : segments_) n += s.size;
  return n;
}

std::vector<ParamPiece> ParamTable::pieces(Range range) const {
  std::vector<ParamPiece> out;
  for (int index : segment(range.segment).params) {
    const Param& p = param(index);
    const int64_t lo = std::max(range.lo, p.offset), hi = std::min(range.hi, p.offset + p.elements());
    if (lo < hi) out.push_back({index, {range.segment, lo, hi}, lo - p.offset});
  }
  return out;
}

std::vector<int64_t> owner_cuts(int64_t segment_size, int owners) {
  constexpr int64_t grain = 64;
  const int64_t grains = (segment_size + grain - 1) / grain;
  std::vector<int64_t> cuts(static_cast<std::size_t>(owners) + 1);
  for (int i = 0; i <= owners; ++i) cuts[static_cast<std::size_t>(i)] = std::min(segment_size, grains * i / owners * grain);
  cuts.back() = segment_size;
  return cuts;
}

}  // namespace nsp
