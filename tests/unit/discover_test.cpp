// What nsp finds out about processor, host, launcher, cores and the other ranks.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/discover/control_group.hpp"
#include "core/discover/cpu_features.hpp"
#include "core/discover/host.hpp"
#include "core/discover/launcher.hpp"
#include "core/discover/peak.hpp"
#include "core/discover/thread_share.hpp"
#include "core/discover/topology.hpp"
#include "tests/support/cpu_backend.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/toy_backend.hpp"

namespace nsp {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder with proc/ and sys/ of our own.
class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() : root_(fs::temp_directory_path() / ("nsp_discover_" + std::to_string(getpid()))) { fs::remove_all(root_); }
  ~FakeRoot() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_;
};
using ControlGroup = FakeRoot;
using Host = FakeRoot;

Launch launch_of(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  });
}

CoreSet cores(std::initializer_list<int> numbers) {
  CoreSet set;
  for (int n : numbers) set[static_cast<std::size_t>(n)] = true;
  return set;
}

TEST(CpuFeatures, LevelsContainEachOther) {
  const uint64_t bits = cpu_features();
  EXPECT_TRUE((bits & NSP_CPU_X86_64_V4) == 0 || (bits & NSP_CPU_X86_64_V3) != 0);
  EXPECT_TRUE((bits & NSP_CPU_X86_64_V3) == 0 || (bits & NSP_CPU_X86_64_V2) != 0);
  EXPECT_LT(bits, 32u);
}

TEST(CpuFeatures, AgreesWithTheKernel) {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line) && line.rfind("flags", 0) != 0) {
  }
  if (line.empty()) GTEST_SKIP() << "this kernel lists no flags";
  line += ' ';
  EXPECT_EQ(contains(line, " avx2 ") && contains(line, " bmi2 ") && contains(line, " fma "), (cpu_features() & NSP_CPU_X86_64_V3) != 0);
  EXPECT_EQ(contains(line, " avx512vl ") && contains(line, " avx512dq "), (cpu_features() & NSP_CPU_X86_64_V4) != 0);
}

TEST(CpuFeatures, Names) {
  EXPECT_EQ(cpu_feature_text(0), "none");
  EXPECT_EQ(cpu_feature_text(NSP_CPU_X86_64_V4), "AVX-512 (x86-64-v4)");
  EXPECT_EQ(cpu_feature_text(NSP_CPU_X86_64_V3 | NSP_CPU_AVX512_BF16), "AVX2 (x86-64-v3), AVX-512 BF16");
  EXPECT_EQ(cpu_feature_text(uint64_t{1} << 40), "feature bit 40, which this nsp does not know");
}

TEST(Launcher, OpenMpiInsideASlurmStep) {
  const Launch launch = launch_of({{"OMPI_COMM_WORLD_RANK", "5"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                   {"SLURM_PROCID", "1"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_NTASKS", "2"}});
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_size, 4);
}

TEST(Launcher, SlurmStep) {
  const Launch launch = launch_of({{"SLURM_PROCID", "5"},
                                   {"SLURM_STEP_ID", "3"},
                                   {"SLURM_NTASKS", "16"},
                                   {"SLURM_STEP_NUM_TASKS", "7"},
                                   {"SLURM_LOCALID", "0"},
                                   {"SLURM_NODEID", "2"},
                                   {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}});
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.world_size, 7);
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_size, 1);
}

TEST(Launcher, ASlurmBatchScriptIsNoLauncher) {
  EXPECT_EQ(launch_of({{"SLURM_NTASKS", "16"}, {"SLURM_JOB_ID", "1"}}).world_size, 0);
  EXPECT_EQ(launch_of({{"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}).world_size, 0);
  // Its own step, and that of an interactive shell.
  EXPECT_EQ(launch_of({{"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967291"}}).world_size, 0);
}

TEST(Launcher, PmiAndItsLocalVariables) {
  const Launch hydra = launch_of({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(hydra.world_size, 4);
  EXPECT_EQ(hydra.local_rank, 1);
  EXPECT_EQ(hydra.local_size, 2);
  const Launch cray = launch_of({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_RANK", "3"}, {"PMI_LOCAL_SIZE", "4"}});
  EXPECT_EQ(cray.local_rank, 3);
  EXPECT_EQ(cray.local_size, 4);
  const Launch pmi2 = launch_of({{"PMI_RANK", "3"},
                                 {"PMI_SIZE", "4"},
                                 {"SLURM_PROCID", "3"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_LOCALID", "1"},
                                 {"SLURM_NODEID", "1"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}});
  EXPECT_EQ(pmi2.local_rank, 1);
  EXPECT_EQ(pmi2.local_size, 2);
  EXPECT_EQ(launch_of({{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "2"}}).world_size, 2);
}

TEST(Launcher, NoneAndNonsense) {
  EXPECT_EQ(launch_of({}).launcher, "");
  EXPECT_EQ(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "many"}}).world_size, 0);
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_RANK", "-1"}}).launcher, "");
}

TEST_F(ControlGroup, Version2TakesTheTightestLevel) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.max", "1000000\n");
  write("sys/fs/cgroup/job/memory.current", "700000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 100000\ninactive_file 200000\n");
  write("sys/fs/cgroup/memory.max", "2000000\n");
  write("sys/fs/cgroup/memory.current", "100000\n");
  write("sys/fs/cgroup/job/step/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  const ControlGroupLimits limits = control_group_limits(root_);
  EXPECT_EQ(limits.memory_limit, 1000000);
  EXPECT_EQ(limits.memory_available, 500000);
  EXPECT_EQ(limits.cpus, 1.5);
}

TEST_F(ControlGroup, Version1) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n2:cpu,cpuacct:/slow\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  write("sys/fs/cgroup/cpu/slow/cpu.cfs_quota_us", "2500\n");
  write("sys/fs/cgroup/cpu/slow/cpu.cfs_period_us", "10000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const ControlGroupLimits limits = control_group_limits(root_);
  EXPECT_EQ(limits.memory_limit, 2000000);
  EXPECT_EQ(limits.memory_available, 1500000);
  EXPECT_EQ(limits.cpus, 0.25);
}

// As seen inside a container: the path is the outer one, the mount shows the inner group.
TEST_F(ControlGroup, PathOutsideOfTheMount) {
  write("proc/self/cgroup", "4:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000\n");
  EXPECT_EQ(control_group_limits(root_).memory_limit, 4000000);
}

TEST_F(ControlGroup, NothingThere) {
  const ControlGroupLimits limits = control_group_limits(root_);
  EXPECT_EQ(limits.memory_limit, 0);
  EXPECT_EQ(limits.cpus, 0);
}

TEST_F(Host, LimitsAndCounts) {
  write("proc/meminfo", "MemTotal:       24683584 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n");
  write("proc/cpuinfo", "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9654\n");
  write("proc/self/cgroup", "0::/job\n");
  fs::create_directories(root_ / "sys/devices/system/node/node0");
  fs::create_directories(root_ / "sys/devices/system/node/node1");
  HostInfo host = read_host(root_);
  EXPECT_EQ(host.cpu_model, "AMD EPYC 9654");
  EXPECT_EQ(host.numa_nodes, 2);
  EXPECT_EQ(host.memory_total, int64_t{24683584} * 1024);
  EXPECT_EQ(host.memory_available, int64_t{20000000} * 1024);
  EXPECT_FALSE(host.memory_limited);

  write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  host = read_host(root_);
  EXPECT_EQ(host.memory_total, 1 << 30);
  EXPECT_TRUE(host.memory_limited);
  EXPECT_TRUE(contains(host_text(host), "1.0 GiB available of 1.0 GiB (the limit of a control group)")) << host_text(host);
}

TEST_F(Host, HardwareThreadsOfOneCoreCountOnce) {
  const CoreSet mine = allowed_cores();
  for (std::size_t core = 0; core < mine.size(); ++core) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/";
    if (!mine[core]) continue;
    write(folder + "physical_package_id", "0\n");
    write(folder + "core_id", "7\n");
  }
  EXPECT_EQ(read_host(root_).physical_cores, 1);
}

TEST(HostHere, IsReadable) {
  const HostInfo host = read_host();
  EXPECT_FALSE(host.name.empty());
  EXPECT_GE(host.cores.count(), 1u);
  EXPECT_GT(host.memory_total, 0);
  EXPECT_GT(host.memory_available, 0);
  EXPECT_LE(host.memory_available, host.memory_total);
}

TEST(Cores, TextAndMask) {
  EXPECT_EQ(core_text(cores({0, 1, 2, 3, 8, 10, 11})), "0-3,8,10-11");
  EXPECT_EQ(core_text(cores({1023})), "1023");
  EXPECT_EQ(core_text({}), "none");
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const CoreSet all = allowed_cores();
  std::size_t first = 0;
  while (!all[first]) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const CoreSet bound = allowed_cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(bound, cores({static_cast<int>(first)}));
}

TEST(ThreadShare, RanksThatShareAMaskDivideIt) {
  const ThreadShare share = threads_for_rank(std::vector<CoreSet>(2, cores({0, 1, 2, 3, 4, 5, 6, 7})), 1, 0);
  EXPECT_EQ(share.threads, 4);
  EXPECT_FALSE(share.more_ranks_than_cores);
  EXPECT_EQ(share.text, "8 cores allowed (0-7), 2 ranks on this host, 4 threads each");
  EXPECT_EQ(threads_for_rank(std::vector<CoreSet>(3, cores({0, 1, 2, 3, 4, 5, 6, 7})), 0, 0).threads, 2);
  // Ten times a tenth is a core.
  const ThreadShare tenth = threads_for_rank(std::vector<CoreSet>(10, cores({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})), 2, 0);
  EXPECT_EQ(tenth.threads, 1);
  EXPECT_FALSE(tenth.more_ranks_than_cores);
  CoreSet sixty;
  for (std::size_t core = 0; core < 60; ++core) sixty[core] = true;
  EXPECT_EQ(threads_for_rank(std::vector<CoreSet>(10, sixty), 9, 0).threads, 6);  // 60 times 0.1 is 5.99... in binary
  EXPECT_EQ(threads_for_rank({CoreSet().set()}, 0, 0).threads, 512);              // of 1024: what a pool can hold
}

TEST(ThreadShare, MoreRanksThanCores) {
  const ThreadShare share = threads_for_rank(std::vector<CoreSet>(8, cores({0, 1})), 7, 0);
  EXPECT_EQ(share.threads, 1);
  EXPECT_TRUE(share.more_ranks_than_cores);
  EXPECT_EQ(share.text, "2 cores allowed (0-1), 8 ranks on this host, 1 thread each; more ranks than cores");
}

TEST(ThreadShare, RanksBoundApartKeepTheirMask) {
  const std::vector<CoreSet> masks = {cores({0, 1, 2}), cores({3})};
  EXPECT_EQ(threads_for_rank(masks, 0, 0).threads, 3);
  EXPECT_EQ(threads_for_rank(masks, 1, 0).threads, 1);
  EXPECT_EQ(threads_for_rank(masks, 0, 0).text, "3 cores allowed (0-2), 2 ranks on this host, 3 threads for this rank");
}

TEST(ThreadShare, ControlGroupsCount) {
  EXPECT_EQ(threads_for_rank({cores({0, 1, 2, 3})}, 0, 2.5).threads, 2);
  const ThreadShare slow = threads_for_rank({cores({0, 1})}, 0, 0.25);
  EXPECT_EQ(slow.threads, 1);
  EXPECT_EQ(slow.text, "2 cores allowed (0-1), of which a control group grants 0.25, 1 rank on this host, 1 thread; less than one core");
  EXPECT_EQ(threads_for_rank(std::vector<CoreSet>(2, cores({0, 1, 2, 3, 4, 5, 6, 7})), 0, 4).threads, 2);
}

RankInfo rank_info(const std::string& host, const std::string& backend, double peak) {
  RankInfo info;
  info.host = host;
  info.backend = backend;
  info.device_name = backend == "cpu_native" ? "AMD EPYC" : "NVIDIA H100";
  info.device_kind = backend == "cpu_native" ? "cpu" : "cuda";
  info.threads = backend == "cpu_native" ? 2 : 0;
  info.cores = cores({0, 63, 64, 1023});
  info.local_rank = 3;
  info.memory_total = int64_t{80} << 30;
  info.memory_free = int64_t{79} << 30;
  info.host_memory_total = 5;
  info.host_memory_available = 4;
  info.peak_gflops = peak;
  return info;
}

TEST(Topology, PackAndUnpack) {
  RankInfo info = rank_info("node1", "cpu_native", 95.5);
  EXPECT_EQ(unpack(pack(info).data()), info);
  EXPECT_EQ(pack(info), pack(rank_info("node1", "cpu_native", 95.5)));
  info.host = std::string(100, 'h');
  EXPECT_EQ(unpack(pack(info).data()).host, std::string(63, 'h'));
  EXPECT_EQ(unpack(pack(RankInfo()).data()), RankInfo());
}

TEST(Topology, HostsAndText) {
  std::vector<char> gathered;
  for (const RankInfo& info :
       {rank_info("node1", "cpu_native", 95), rank_info("node1", "cpu_native", 60), rank_info("node2", "cuda_sm90", 400000),
        rank_info("node1", "cpu_native", 90), rank_info("node2", "cpu_native", 0)}) {
    const auto block = pack(info);
    gathered.insert(gathered.end(), block.begin(), block.end());
  }
  const Topology topology = unpack_topology(gathered);
  const std::vector<HostRanks> hosts = topology.hosts();
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].name, "node1");
  EXPECT_EQ(hosts[0].ranks, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(topology.peak_gflops(), 400245);
  int place = -1;
  EXPECT_EQ(topology.masks_beside(3, &place).size(), 3u);
  EXPECT_EQ(place, 2);
  EXPECT_EQ(topology.text(),
            "5 ranks on 2 hosts\n"
            "  node1: 3 x AMD EPYC (backend cpu_native, 2 threads, 60 to 95 GFLOP/s, 79.0 GiB of 80.0 GiB free), ranks 0-1,3\n"
            "  node2: 1 x NVIDIA H100 (backend cuda_sm90, 400 TFLOP/s, 79.0 GiB of 80.0 GiB free), rank 2\n"
            "  node2: 1 x AMD EPYC (backend cpu_native, 2 threads, 79.0 GiB of 80.0 GiB free), rank 4\n");
  gathered.pop_back();
  EXPECT_THROW(unpack_topology(gathered), Error);
}

TEST(Peak, SmallDevicesAreNotMeasured) {
  Device device(test::toy_backend(), "toy", 0, 1);  // 1 MiB
  Stream stream(device);
  EXPECT_EQ(measure_matmul_peak(stream, DType::f32), 0);
}

TEST(Peak, RunsWithoutTouchingDeviceMemory) {
  const auto fake = test::make_fake_backend(test::toy_backend(), 256 << 20, 1);
  Device device(fake->table(), "fake", 0, 1);
  Stream stream(device);
  EXPECT_GT(measure_matmul_peak(stream, DType::f32), 0);
  EXPECT_GT(measure_matmul_peak(stream, DType::bf16), 0);
  EXPECT_EQ(device.info().memory_free, 256 << 20);
}

TEST(Peak, OfTheCpuBackend) {
  Device device(test::load_cpu_backend(), "cpu", 0, 1);
  Stream stream(device);
  const double peak = measure_matmul_peak(stream, DType::f32);
  // One core: more than a plain loop, less than any core has.
  EXPECT_GT(peak, 1);
  EXPECT_LT(peak, 1000);
  RecordProperty("gflops", std::to_string(peak));
}

}  // namespace
}  // namespace nsp
