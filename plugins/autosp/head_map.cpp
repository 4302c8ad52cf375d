#include "plugins/autosp/head_map.hpp"

#include <algorithm>

namespace nsp {

std::vector<int64_t> near_equal_cuts(int64_t n, int parts) {
  std::vector<int64_t> cuts;
  for (int i = 0; i <= parts; ++i) cuts.push_back(n * i / parts);
  return cuts;
}

std::vector<HeadShare> head_map(int64_t heads, int64_t kv_heads, int degree) {
  NSP_REQUIRE(degree >= 1 && degree <= heads && kv_heads >= 1 && heads % kv_heads == 0,
              "each rank gets a query head, each group whole heads");
  const int64_t group = heads / kv_heads;
  std::vector<HeadShare> map;
  if (degree <= kv_heads) {
    const std::vector<int64_t> cuts = near_equal_cuts(kv_heads, degree);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) map.push_back({cuts[i] * group, cuts[i + 1] * group, cuts[i], cuts[i + 1]});
    return map;
  }
  const std::vector<int64_t> ranks = near_equal_cuts(degree, static_cast<int>(kv_heads));
  for (int64_t g = 0; g < kv_heads; ++g) {
    const auto at = static_cast<std::size_t>(g);
    const std::vector<int64_t> cuts = near_equal_cuts(group, static_cast<int>(ranks[at + 1] - ranks[at]));
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) map.push_back({g * group + cuts[i], g * group + cuts[i + 1], g, g + 1});
  }
  return map;
}

bool is_even(const std::vector<HeadShare>& map) {
  return std::all_of(map.begin(), map.end(), [&](const HeadShare& share) { return share.query_heads() == map[0].query_heads(); });
}

}  // namespace nsp
