// All ranks of the job and what they run on, as every rank knows it after start-up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/discover/core_set.hpp"

namespace nsp {

struct RankInfo {
  std::string host;
  std::string backend;      // "cpu_native"
  std::string device_name;  // "AMD EPYC (2 threads)"
  std::string device_kind;  // "cpu", "cuda"
  int local_rank = 0;
  int threads = 0;           // compute threads; 0 where that means nothing
  CoreSet cores;             // that the rank may use
  int64_t memory_total = 0;  // bytes of device memory
  int64_t memory_free = 0;
  int64_t host_memory_total = 0;  // bytes of host memory, shared by the ranks of a host; control groups' limits included
  int64_t host_memory_available = 0;
  double peak_gflops = 0;  // measured; 0 = not measured

  friend bool operator==(const RankInfo&, const RankInfo&) = default;
};

// A RankInfo as bytes of fixed number, to be gathered. Names that are too long are cut. All ranks run the same build, so the
// bytes have no version.
constexpr std::size_t kRankInfoBytes = 512;
std::array<char, kRankInfoBytes> pack(const RankInfo& info);
// REQUIRES kRankInfoBytes readable bytes that pack() made.
RankInfo unpack(const char* bytes);

struct HostRanks {
  std::string name;
  std::vector<int> ranks;  // ascending
};

// "rank 5", "ranks 0-3,8"; a long list is cut: "ranks 0,2,4,6,... (512 in all)". REQUIRES ascending ranks.
std::string rank_text(const std::vector<int>& ranks);

struct Topology {
  std::vector<RankInfo> ranks;  // by world rank
  bool described = false;       // nobody has looked at these machines: sizes and peaks are those of data sheets

  // Hosts in the order of their first rank.
  std::vector<HostRanks> hosts() const;
  // The allowed cores of all ranks on the host of this one, and its place among them: what threads_for_rank takes.
  std::vector<CoreSet> masks_beside(int rank, int* place) const;
  double peak_gflops() const;  // of all ranks together
  // To print: one line for the job, then one per kind of device and run of hosts that are alike, with its ranks.
  std::string text() const;
};

// gathered: the blocks of all ranks one after the other, as gather_now() returns them. REQUIRES a whole number of blocks.
Topology unpack_topology(const std::vector<char>& gathered);

}  // namespace nsp
