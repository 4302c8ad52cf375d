// Nearest names for misspelt ones.
#include "core/config/suggest.hpp"

#include <gtest/gtest.h>

namespace nsp {
namespace {

TEST(Suggest, EditDistanceCountsInsertDeleteReplaceSwap) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("layers", "layer"), 1u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Suggest, OnlyTheNearestAndAtMostThree) {
  EXPECT_EQ(nearest("model.layer", {"train.lr", "model.layers", "model.heads"}), std::vector<std::string>{"model.layers"});
  EXPECT_EQ(nearest("aaaa", {"aabb", "aaab", "aaba", "abaa", "baaa"}), (std::vector<std::string>{"aaab", "aaba", "abaa"}));
}

TEST(Suggest, LastPartOfADottedNameCounts) {
  EXPECT_EQ(nearest("layers", {"model.layers", "train.lr"}), std::vector<std::string>{"model.layers"});
  EXPECT_EQ(nearest("lr", {"model.layers", "train.lr"}), std::vector<std::string>{"train.lr"});
}

TEST(Suggest, CutOffNameIsNear) {
  EXPECT_EQ(nearest("run.log", {"run.dir", "run.log_every"})[0], "run.log_every");
}

TEST(Suggest, NothingNearGivesNothing) {
  EXPECT_TRUE(nearest("", {"a"}).empty());
  EXPECT_TRUE(nearest("zebra", {"model.layers", "train.lr"}).empty());
  EXPECT_EQ(did_you_mean("zebra", {"adamw"}), "");
}

TEST(Suggest, Texts) {
  EXPECT_EQ(did_you_mean("aaaa", {"aaab"}, "--"), "Did you mean --aaab?");
  EXPECT_EQ(did_you_mean("aaaa", {"aaab", "aaac"}), "Did you mean aaab or aaac?");
  EXPECT_EQ(comma_list({"a", "b"}), "a, b");
  EXPECT_EQ(comma_list({}), "none");
}

}  // namespace
}  // namespace nsp
