// The C border against the layout that was released: tests/golden/abi_1_0.txt.
//
// The rule for backends: structs and the op table only grow at their ends. So every released member must lie where it
// lay, with its size, and no struct may have become smaller. Values that are held in arrays or by value in other structs
// (nsp_tensor, nsp_option) may not grow at all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/abi/layout_c11.h"

namespace {

struct Place {
  std::size_t offset, size;
};
using Layout = std::map<std::string, Place>;  // "nsp_tensor" or "nsp_tensor.data"

std::string key_of(const layout_row& row) {
  return row.member == nullptr ? std::string(row.structure) : std::string(row.structure) + "." + row.member;
}

std::vector<layout_row> rows_of_c11() {
  std::size_t count = 0;
  const layout_row* rows = layout_of_c11(&count);
  return {rows, rows + count};
}

Layout released() {
  const char* source = std::getenv("NSP_TEST_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/tests/golden/abi_1_0.txt");
  EXPECT_TRUE(file) << "tests/golden/abi_1_0.txt is missing";
  Layout layout;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    Place place{};
    if (!line.empty() && line[0] != '#' && words >> key >> place.offset >> place.size) layout[key] = place;
  }
  return layout;
}

TEST(Abi, CAndCxxSeeTheSameLayout) {
  const std::vector<layout_row> c = rows_of_c11();
  ASSERT_EQ(c.size(), std::size(layout_rows));
  for (std::size_t i = 0; i < c.size(); ++i) {
    EXPECT_EQ(key_of(c[i]), key_of(layout_rows[i]));
    EXPECT_EQ(c[i].offset, layout_rows[i].offset) << key_of(c[i]);
    EXPECT_EQ(c[i].size, layout_rows[i].size) << key_of(c[i]);
  }
}

TEST(Abi, TodaysLayoutBeginsWithTheReleasedOne) {
  Layout today;
  for (const layout_row& row : rows_of_c11()) today[key_of(row)] = {row.offset, row.size};
  const Layout before = released();
  EXPECT_GT(before.size(), 200u);
  for (const auto& [key, place] : before) {
    ASSERT_EQ(today.count(key), 1u) << key << " was released and is gone";
    EXPECT_EQ(today[key].offset, place.offset) << key << " has moved";
    if (key.find('.') != std::string::npos || key == "nsp_tensor" || key == "nsp_option") {
      EXPECT_EQ(today[key].size, place.size) << key << " has changed its size";
    } else {
      EXPECT_GE(today[key].size, place.size) << key << " has become smaller";
    }
  }
  for (const layout_row& row : rows_of_c11()) {
    if (before.count(key_of(row)) > 0) continue;
    // In the form of the golden file, to be appended to it when the next minor version is released.
    std::printf("new: %s %zu %zu\n", key_of(row).c_str(), row.offset, row.size);
    // A member in what was padding leaves `size` as it was: the other side could not tell whether it is there.
    const auto structure = before.find(row.structure);
    if (row.member == nullptr || structure == before.end()) continue;
    EXPECT_GE(row.offset, structure->second.size) << key_of(row) << " lies in the padding of the released struct";
  }
}

// Converts to whatever a member is.
struct Anything {
  template <class T>
  operator T() const;
};
template <class S, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    S{(static_cast<void>(I), Anything{})...};
  };
}
// How many values a struct can be initialised with: its members, those of arrays counted one by one.
template <class S, std::size_t N = 1>
constexpr std::size_t values_of() {
  if constexpr (takes<S>(std::make_index_sequence<N + 1>())) {
    return values_of<S, N + 1>();
  } else {
    return N;
  }
}
template <class M>
constexpr std::size_t values_of_member() {
  return std::is_array_v<M> ? std::extent_v<M> : 1;
}

TEST(Abi, TheListNamesEveryMember) {
  std::map<std::string, std::size_t> listed, there;
#define STRUCT(s) there[#s] = values_of<s>();
#define MEMBER(s, m) listed[#s] += values_of_member<decltype(s::m)>();
#include "tests/abi/layout.inc"
#undef STRUCT
#undef MEMBER
  for (const auto& [structure, count] : there) EXPECT_EQ(listed[structure], count) << structure << " has a member that layout.inc lacks";
}

TEST(Abi, ArgumentsBeginWithSizeAndThenTheirTensors) {
  std::map<std::string, std::vector<layout_row>> members;
  for (const layout_row& row : rows_of_c11()) {
    if (row.member != nullptr) members[row.structure].push_back(row);
  }
  const auto check = [&members](const std::string& op, std::size_t tensors) {
    const std::vector<layout_row>& m = members["nsp_" + op + "_args"];
    ASSERT_GT(m.size(), tensors) << op;
    EXPECT_STREQ(m[0].member, "size");
    for (std::size_t i = 1; i < m.size(); ++i) {
      const bool tensor = m[i].size == sizeof(nsp_tensor);
      EXPECT_EQ(tensor, i <= tensors) << op << ": " << m[i].member;
      EXPECT_TRUE(!tensor || m[i].offset == 8 + (i - 1) * sizeof(nsp_tensor)) << op << ": " << m[i].member;
    }
  };
#define NSP_CHECK_OP(name, tensors) check(#name, tensors);
  NSP_OP_LIST(NSP_CHECK_OP)
#undef NSP_CHECK_OP
}

TEST(Abi, NumbersOfPublishedNames) {
  EXPECT_EQ(NSP_F32, 0);
  EXPECT_EQ(NSP_BF16, 1);
  EXPECT_EQ(NSP_F64, 2);
  EXPECT_EQ(NSP_I32, 3);
  EXPECT_EQ(NSP_U8, 4);
  EXPECT_EQ(NSP_I64, 5);
  EXPECT_EQ(NSP_OK, 0);
  EXPECT_EQ(NSP_ERR_DEVICE, 4);
  EXPECT_EQ(NSP_MEMORY_PINNED, 1);
  EXPECT_EQ(NSP_MAX_RANK, 5);
  EXPECT_EQ(NSP_PLUGIN_MAGIC, 0x4e53504dU);
  EXPECT_EQ(NSP_NOTE_TYPE, 0x6e737001);
  EXPECT_EQ(NSP_OP_COUNT, (sizeof(nsp_op_table) - sizeof(uint64_t)) / sizeof(void*));
}

TEST(Abi, APluginMayBeWrittenInC) {
  const nsp_plugin_v1& plugin = *plugin_of_c11();
  EXPECT_EQ(plugin.magic, NSP_PLUGIN_MAGIC);
  EXPECT_EQ(plugin.size, sizeof(nsp_plugin_v1));
  EXPECT_EQ(plugin.abi_class, static_cast<uint32_t>(NSP_ABI_C));
  EXPECT_STREQ(plugin.name, "of_c11");
  EXPECT_EQ(plugin.option_count, 1u);
  EXPECT_STREQ(plugin.options[0].type, "int");
}

TEST(Abi, StampsOfCAndCxxDiffer) {
  const std::string cxx = NSP_STAMP, c = stamp_of_c11();
  EXPECT_NE(cxx, c) << "a C module must not pass for a C++ one";
  EXPECT_NE(cxx.find("cxx11abi=1"), std::string::npos) << cxx;
  EXPECT_NE(cxx.find("c++202002L"), std::string::npos) << cxx;
  EXPECT_EQ(cxx.rfind("nsp" NSP_VERSION ";", 0), 0u) << cxx;
}

}  // namespace
