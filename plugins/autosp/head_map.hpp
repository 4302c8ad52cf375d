// Which heads each rank of a replica attends with.
//
// S ranks, H query heads in G groups of H / G, one key/value head a group.
// S <= G: groups are cut near-equally over the ranks, so no group is torn and no key/value head is held twice.
// S > G: each group gets ranks of its own, near-equally many, and its query heads are cut near-equally over them; every one of
// these ranks holds the group's key/value head. There are enough query heads for that if S <= H.
#pragma once

#include <cstdint>
#include <vector>

#include "nsp/parallel_strategy.hpp"

namespace nsp {

// Near-equal cuts of n things over `parts`: part i has [cuts[i], cuts[i+1]).
std::vector<int64_t> near_equal_cuts(int64_t n, int parts);

// By position. REQUIRES 1 <= degree <= heads, and heads a multiple of kv_heads >= 1.
std::vector<HeadShare> head_map(int64_t heads, int64_t kv_heads, int degree);

// True if all ranks attend with equally many query heads.
bool is_even(const std::vector<HeadShare>& map);

}  // namespace nsp
