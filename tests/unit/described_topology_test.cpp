// Machines that are described: the table of kinds, the list of devices, the layout of ranks on hosts.
#include "core/discover/described_topology.hpp"

#include <gtest/gtest.h>

#include <set>

#include "nsp/error.hpp"

namespace nsp {
namespace {

std::string refusal(const std::string& devices) {
  try {
    parse_devices(devices);
  } catch (const Error& e) {
    return e.kind() == ErrorKind::usage ? e.what() : "wrong kind";
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

HostInfo this_host() {
  HostInfo host;
  host.name = "here";
  host.cpu_model = "Some CPU";
  for (std::size_t core = 0; core < 4; ++core) host.cores[core] = true;
  host.memory_total = int64_t{64} << 30;
  host.memory_available = int64_t{10} << 30;
  return host;
}

Topology describe(const std::string& devices, const MachineDescription& machine = {}) {
  return describe_topology(parse_devices(devices), machine, this_host());
}

TEST(DeviceKinds, AreNamedOnceAndHaveTheirFacts) {
  std::set<std::string> keys;
  for (const DeviceKind& kind : device_kinds()) {
    EXPECT_TRUE(keys.insert(kind.key).second) << kind.key;
    EXPECT_FALSE(kind.source.empty());
    if (kind.is_cpu()) continue;
    EXPECT_GE(kind.memory_gb, 16) << kind.key;
    EXPECT_GE(kind.bf16_tflops, kind.fp32_tflops) << kind.key;
    EXPECT_EQ(kind.backend.rfind("cuda_sm", 0), 0u) << kind.key;
  }
  EXPECT_EQ(find_device_kind("h200").memory_bytes(), 141000000000);
  EXPECT_EQ(find_device_kind("h100").peak_gflops(DType::bf16), 989000);
  EXPECT_EQ(find_device_kind("h100").peak_gflops(DType::f32), 67000);
}

TEST(DeviceKinds, AnUnknownOneNamesTheNearestAndAll) {
  const std::string text = refusal("h10:4");
  EXPECT_TRUE(contains(text, "'h10'") && contains(text, "Did you mean h100?") && contains(text, "rtx_pro_6000, l40s")) << text;
  EXPECT_TRUE(contains(refusal("abacus:1"), "Known are h100, h200"));
}

TEST(ParseDevices, TakesAListInOrder) {
  const std::vector<DeviceCount> devices = parse_devices("h100:32,a6000:16,h100:1");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[1].kind.key, "a6000");
  EXPECT_EQ(devices[1].count, 16);
}

TEST(ParseDevices, Refusals) {
  for (const char* text : {"", "h100", "h100:", "h100:0", "h100:-1", "h100:x", "h100:2,", ",h100:2", "h100:9999999", "h100:1048576,h100:1"})
    EXPECT_FALSE(refusal(text).empty()) << text;
  EXPECT_TRUE(contains(refusal("h100"), "such as h100:32,a6000:32"));
}

TEST(DescribedTopology, EachEntryBeginsAHost) {
  const Topology t = describe("h100:12,a6000:4,h100:2");
  ASSERT_EQ(t.ranks.size(), 18u);
  EXPECT_EQ(t.ranks[7].host, "h100-1");
  EXPECT_EQ(t.ranks[8].host, "h100-2");
  EXPECT_EQ(t.ranks[8].local_rank, 0);
  EXPECT_EQ(t.ranks[12].host, "a6000-1");
  EXPECT_EQ(t.ranks[16].host, "h100-3");
  EXPECT_EQ(t.ranks[12].memory_free, 48000000000);
  EXPECT_EQ(t.ranks[0].host_memory_available, 0);  // nobody has said
  EXPECT_EQ(describe("h100:12", {.per_host = 4}).hosts().size(), 3u);
  EXPECT_EQ(describe("h100:2", {.memory = 5, .host_memory = 7}).ranks[1].memory_free, 5);
  EXPECT_EQ(describe("h100:2", {.memory = 5, .host_memory = 7}).ranks[1].host_memory_available, 7);
}

TEST(DescribedTopology, ProcessorsAreLikeThisMachine) {
  const Topology t = describe("cpu:6", {.cpu_backend = "cpu_x"});
  EXPECT_EQ(t.hosts().size(), 2u);  // 4 cores
  EXPECT_EQ(t.ranks[0].threads, 1);
  EXPECT_EQ(t.ranks[0].backend, "cpu_x");
  EXPECT_EQ(t.ranks[0].host_memory_available, int64_t{64} << 30);
  EXPECT_EQ(describe("cpu:6", {.per_host = 2}).ranks[0].threads, 2);
  EXPECT_EQ(describe("cpu:6", {.per_host = 2, .memory = 100}).ranks[0].host_memory_available, 200);
  EXPECT_EQ(describe("cpu:6", {.per_host = 2, .host_memory = 100}).ranks[0].host_memory_available, 100);
}

TEST(DescribedTopology, HostsThatAreAlikeAreOneLine) {
  EXPECT_EQ(describe("h100:4096,a6000:4", {.dtype = DType::bf16}).text(),
            "4100 ranks on 513 hosts, as described; sizes and peaks are those of data sheets\n"
            "  h100-1 to h100-512 (512 hosts), each: 8 x NVIDIA H100 SXM 80 GB (backend cuda_sm90, 989 TFLOP/s, 74.5 GiB), ranks 0-4095\n"
            "  a6000-1: 4 x NVIDIA RTX A6000 48 GB (backend cuda_sm86, 155 TFLOP/s, 44.7 GiB), ranks 4096-4099\n");
}

TEST(RankText, CutsALongList) {
  std::vector<int> even;
  for (int r = 0; r < 100; r += 2) even.push_back(r);
  EXPECT_EQ(rank_text({0, 1, 2, 3, 8}), "ranks 0-3,8");
  EXPECT_EQ(rank_text({7}), "rank 7");
  EXPECT_EQ(rank_text(even), "ranks 0,2,4,6,8,10,12,14,... (50 in all)");
}

}  // namespace
}  // namespace nsp
