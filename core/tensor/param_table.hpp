// The parameters of a model: name -> (segment, offset, shape, role, init).
//
// A segment (embedding, block l, head) is the unit of residency, overlap and synchronisation. Offsets are logical: element
// offsets of the whole, unsharded, true-shaped segment. Storage of a segment is its tensors in order, with padding at its
// end only: rows that pad a vocabulary belong to the last tensor and show neither in offsets nor in files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nsp/types.hpp"

namespace nsp {

enum class InitKind { zeros, ones, normal };

struct Init {
  InitKind kind = InitKind::zeros;
  double std = 0.0;  // of normal
};

struct Param {
  std::string name;  // "blocks.0.attn.qkv.weight"
  int segment = 0;
  int64_t offset = 0;          // elements, in the segment
  std::vector<int64_t> shape;  // true shape
  Role role = Role::matrix;
  Init init;
  int64_t padded_rows = 0;  // rows in storage; 0 = shape[0]
  int64_t elements() const noexcept {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }
};

struct Segment {
  std::string name;
  int64_t size = 0;     // elements of its tensors, true shapes
  int64_t storage = 0;  // elements with padding
  std::vector<int> params;
};

// The part of one tensor that lies in a range.
struct ParamPiece {
  int param = 0;
  Range range;  // in the segment
  int64_t offset_in_param = 0;
};

class ParamTable {
 public:
  int add_segment(const std::string& name);
  // Appends to the newest segment; padded_rows only for what will be its last tensor. Returns the parameter's index.
  int add(const std::string& name, std::vector<int64_t> shape, Role role, Init init, int64_t padded_rows = 0);

  const std::vector<Param>& params() const noexcept { return params_; }
  const std::vector<Segment>& segments() const noexcept { return segments_; }
  const Param& param(int index) const { return params_.at(static_cast<std::size_t>(index)); }
  const Segment& segment(int index) const { return segments_.at(static_cast<std::size_t>(index)); }
  int find(const std::string& name) const;  // index, or -1
  int64_t total() const noexcept;           // elements, true shapes
  Range whole(int segment) const { return {segment, 0, this->segment(segment).size}; }
  std::vector<ParamPiece> pieces(Range range) const;

 private:
  std::vector<Param> params_;
  std::vector<Segment> segments_;
  std::map<std::string, int> index_;
};

// Near-equal cuts of a segment over the ranks of a replica, at multiples of 64 elements: owner i holds [cuts[i], cuts[i+1]).
// The last cut is the segment's size; short segments leave the last owners an empty range.
std::vector<int64_t> owner_cuts(int64_t segment_size, int owners);

}  // namespace nsp
