#include "core/discover/topology.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "core/device/byte_text.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

// The wire form. Plain bytes, so that two equal infos are equal blocks.
struct Block {
  char host[64], backend[32], device_name[128], device_kind[16];
  unsigned char cores[128];
  int32_t local_rank, threads;
  int64_t memory_total, memory_free, host_memory_total, host_memory_available;
  double peak_gflops;
  char reserved[96];
};
static_assert(sizeof(Block) == kRankInfoBytes);
static_assert(sizeof(Block::cores) * 8 == CoreSet{}.size());

template <std::size_t N>
void put(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

std::string plural(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// Ranks that a reader need not tell apart. Equal machines report memory sizes that differ a little.
bool alike(const RankInfo& a, const RankInfo& b) {
  const int64_t more = std::max(a.memory_total, b.memory_total), less = std::min(a.memory_total, b.memory_total);
  return a.backend == b.backend && a.device_name == b.device_name && a.threads == b.threads && more - less <= more / 20;
}

std::string peak_text(double slowest, double fastest) {
  if (fastest <= 0) return "";
  const bool tera = fastest >= 10000;
  const double unit = tera ? 1000 : 1;
  const char* name = tera ? "TFLOP/s" : "GFLOP/s";
  char peak[64];
  if (fastest > 1.05 * slowest) {
    std::snprintf(peak, sizeof peak, ", %.0f to %.0f %s", slowest / unit, fastest / unit, name);
  } else {
    std::snprintf(peak, sizeof peak, ", %.0f %s", fastest / unit, name);
  }
  return peak;
}

// What one host's share of these ranks is: `count` of the kind of the first. Least free memory, slowest and fastest of all.
std::string group_text(const std::vector<RankInfo>& all, const std::vector<int>& ranks, std::size_t count) {
  const RankInfo& first = all[static_cast<std::size_t>(ranks.front())];
  double slowest = first.peak_gflops, fastest = slowest;
  int64_t free = first.memory_free;
  for (int rank : ranks) {
    const RankInfo& info = all[static_cast<std::size_t>(rank)];
    slowest = std::min(slowest, info.peak_gflops);
    fastest = std::max(fastest, info.peak_gflops);
    free = std::min(free, info.memory_free);
  }
  std::string text = std::to_string(count) + " x " + first.device_name + " (backend " + first.backend;
  if (first.threads > 0) text += ", " + plural(static_cast<std::size_t>(first.threads), "thread");
  text += peak_text(slowest, fastest);
  if (first.memory_total == 0)
    text += ", memory not known";
  else if (free == first.memory_total)
    text += ", " + byte_text(free);
  else
    text += ", " + byte_text(free) + " of " + byte_text(first.memory_total) + " free";
  return text + "), " + rank_text(ranks);
}

using Groups = std::vector<std::vector<int>>;

Groups groups_of(const std::vector<RankInfo>& all, const HostRanks& host) {
  Groups groups;
  for (int rank : host.ranks) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return alike(all[static_cast<std::size_t>(g.front())], all[static_cast<std::size_t>(rank)]);
    });
    if (group == groups.end()) {
      groups.push_back({rank});
    } else {
      group->push_back(rank);
    }
  }
  return groups;
}

// The same kinds of device, as many of each.
bool hosts_alike(const std::vector<RankInfo>& all, const Groups& a, const Groups& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](const auto& x, const auto& y) {
           return x.size() == y.size() && alike(all[static_cast<std::size_t>(x.front())], all[static_cast<std::size_t>(y.front())]);
         });
}

}  // namespace

std::string rank_text(const std::vector<int>& ranks) {
  constexpr std::size_t most_runs = 8;
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (++runs > most_runs) {
      text += ",... (" + std::to_string(ranks.size()) + " in all)";
      break;
    }
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (last > i) text += '-' + std::to_string(ranks[last]);
    i = last;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::array<char, kRankInfoBytes> pack(const RankInfo& info) {
  Block block;
  std::memset(&block, 0, sizeof block);
  put(block.host, info.host);
  put(block.backend, info.backend);
  put(block.device_name, info.device_name);
  put(block.device_kind, info.device_kind);
  for (std::size_t core = 0; core < info.cores.size(); ++core) {
    if (info.cores[core]) block.cores[core / 8] = static_cast<unsigned char>(block.cores[core / 8] | (1u << core % 8));
  }
  block.local_rank = info.local_rank;
  block.threads = info.threads;
  block.memory_total = info.memory_total;
  block.memory_free = info.memory_free;
  block.host_memory_total = info.host_memory_total;
  block.host_memory_available = info.host_memory_available;
  block.peak_gflops = info.peak_gflops;
  std::array<char, kRankInfoBytes> bytes;
  std::memcpy(bytes.data(), &block, sizeof block);
  return bytes;
}

RankInfo unpack(const char* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  RankInfo info;
  info.host = block.host;
  info.backend = block.backend;
  info.device_name = block.device_name;
  info.device_kind = block.device_kind;
  for (std::size_t core = 0; core < info.cores.size(); ++core) info.cores[core] = (block.cores[core / 8] >> core % 8 & 1) != 0;
  info.local_rank = block.local_rank;
  info.threads = block.threads;
  info.memory_total = block.memory_total;
  info.memory_free = block.memory_free;
  info.host_memory_total = block.host_memory_total;
  info.host_memory_available = block.host_memory_available;
  info.peak_gflops = block.peak_gflops;
  return info;
}

std::vector<HostRanks> Topology::hosts() const {
  std::vector<HostRanks> hosts;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [at, fresh] = index.try_emplace(ranks[rank].host, hosts.size());
    if (fresh) hosts.push_back({ranks[rank].host, {}});
    hosts[at->second].ranks.push_back(static_cast<int>(rank));
  }
  return hosts;
}

std::vector<CoreSet> Topology::masks_beside(int rank, int* place) const {
  std::vector<CoreSet> masks;
  for (std::size_t other = 0; other < ranks.size(); ++other) {
    if (ranks[other].host != ranks.at(static_cast<std::size_t>(rank)).host) continue;
    if (static_cast<int>(other) == rank) *place = static_cast<int>(masks.size());
    masks.push_back(ranks[other].cores);
  }
  return masks;
}

double Topology::peak_gflops() const {
  double sum = 0;
  for (const RankInfo& info : ranks) sum += info.peak_gflops;
  return sum;
}

std::string Topology::text() const {
  const std::vector<HostRanks> all = hosts();
  std::string text = plural(ranks.size(), "rank") + " on " + plural(all.size(), "host") +
                     (described ? ", as described; sizes and peaks are those of data sheets" : "") + "\n";
  for (std::size_t h = 0; h < all.size();) {
    Groups run = groups_of(ranks, all[h]);
    const Groups first = run;
    std::size_t next = h + 1;
    for (; next < all.size(); ++next) {
      const Groups other = groups_of(ranks, all[next]);
      if (!hosts_alike(ranks, first, other)) break;
      for (std::size_t g = 0; g < run.size(); ++g) run[g].insert(run[g].end(), other[g].begin(), other[g].end());
    }
    const std::string name =
        next == h + 1 ? all[h].name : all[h].name + " to " + all[next - 1].name + " (" + std::to_string(next - h) + " hosts), each";
    for (std::size_t g = 0; g < run.size(); ++g) {
      std::sort(run[g].begin(), run[g].end());
      text += "  " + name + ": " + group_text(ranks, run[g], first[g].size()) + "\n";
    }
    h = next;
  }
  return text;
}

Topology unpack_topology(const std::vector<char>& gathered) {
  NSP_REQUIRE(gathered.size() % kRankInfoBytes == 0, "every rank gives one block");
  Topology topology;
  for (std::size_t at = 0; at < gathered.size(); at += kRankInfoBytes) topology.ranks.push_back(unpack(gathered.data() + at));
  return topology;
}

}  // namespace nsp
