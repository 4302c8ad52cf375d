#include "core/app/world.hpp"

#include <algorithm>
#include <cstring>

#include "core/discover/peak.hpp"
#include "core/plan/op_support.hpp"
#include "core/plan/plan.hpp"
#include "core/train/signals.hpp"

namespace nsp {
namespace {

// Ranks start at different times, on a crowded host seconds apart: starting may take a minute whatever comm.timeout is.
constexpr double shortest_start = 60;

std::string chosen_comm(Session& session, bool alone) {
  if (alone) return "self";
  const Launch& launch = session.launch();
  const std::string name = session.line().core("", {}).text("comm");
  if (name == "self" && launch.world_size > 1)
    throw Error(ErrorKind::usage, "comm = self is for a single process, and " + launch.launcher + " started " +
                                      std::to_string(launch.world_size) +
                                      ". Each of them would train alone, in the same run directory. Leave comm out (it is mpi under a "
                                      "launcher), or start one process.");
  if (name != "auto") return name;
  return launch.launcher.empty() ? "self" : "mpi";
}

}  // namespace

World::World(Session& session, bool alone) : host_(read_host()), timeout_(session.line().core("comm", {}).seconds("timeout")) {
  const PluginEntry& entry = session.registry().open("comm", chosen_comm(session, alone));
  provider_ = std::make_unique<PluginPtr<CommProvider>>(create<CommProvider>(entry, PluginContext{comm_options_, session.log()}));
  {
    const BlockingCall starting(ring_, "world", "start");
    const Watchdog watchdog(ring_, session.launch().rank, host_.name, std::max(timeout_, shortest_start), told_to_terminate);
    comm_ = (*provider_)->open(CommContext{ring_});
  }
  wait_.add(comm_.get());
  watchdog_ = std::make_unique<Watchdog>(ring_, comm_->rank(), host_.name, timeout_, told_to_terminate);
}

World::~World() {
  if (comm_) wait_.remove(comm_.get());
}

void World::close() {
  wait_.remove(comm_.get());
  comm_.reset();
  const BlockingCall ending(ring_, "world", "end");  // waits for all ranks, so the watchdog sees it too
  (*provider_)->close();
}

std::string World::first_failure(const std::string& failure) {
  constexpr int64_t length = 2048;
  std::vector<char> own(length, 0);
  std::memcpy(own.data(), failure.data(), std::min<std::size_t>(failure.size(), length - 1));
  const std::vector<char> all = gather_now(*comm_, wait_, own.data(), length);
  for (int r = 0; r < comm_->size(); ++r)
    if (const char* text = &all[static_cast<std::size_t>(r * length)]; *text != 0) return text;
  return "";
}

std::vector<int64_t> World::of_first_rank(std::vector<int64_t> numbers) {
  auto count = static_cast<int64_t>(numbers.size());
  broadcast_now(*comm_, wait_, &count, sizeof count, 0);
  numbers.resize(static_cast<std::size_t>(count));
  if (count > 0) broadcast_now(*comm_, wait_, numbers.data(), count * static_cast<int64_t>(sizeof(int64_t)), 0);
  return numbers;
}

void World::agree(ErrorKind kind, const std::string& failure) {
  const std::string text = first_failure(failure);
  if (!text.empty()) throw Error(kind, text);
}

RankDevice open_device(Session& session, World& world, bool measure_peak, int stored_threads) {
  RankDevice out;
  const Config& config = session.config();
  const PluginEntry& entry = session.registry().choose_backend(config.section("").text("backend"));
  out.backend = entry.note.name;
  RankInfo info;
  info.host = world.host().name;
  info.backend = out.backend;
  info.local_rank = session.launch().local_rank;
  info.cores = world.host().cores;
  info.host_memory_total = world.host().memory_total;
  info.host_memory_available = world.host().memory_available;
  const auto gather = [&] {
    const auto block = pack(info);
    return unpack_topology(gather_now(world.comm(), world.wait(), block.data(), static_cast<int64_t>(block.size())));
  };
  int place = 0;
  const std::vector<CoreSet> masks = gather().masks_beside(world.rank(), &place);
  out.share = threads_for_rank(masks, place, world.host().cpu_limit);
  const std::string wanted = config.section("train").text("threads");
  if (wanted == "auto" && stored_threads > 0 && stored_threads <= static_cast<int>(info.cores.count())) out.share.threads = stored_threads;
  if (wanted != "auto") {
    out.share.threads = static_cast<int>(parse::integer(wanted));
    if (out.share.threads > static_cast<int>(info.cores.count()))
      session.log().warning("train.threads = " + wanted + " is more than the " + std::to_string(info.cores.count()) +
                            " cores that this rank may use. Threads will wait for each other. Lower train.threads, or let the launcher "
                            "give a rank more cores (mpirun --bind-to none).");
  }
  out.device = std::make_unique<Device>(&backend_table(entry), out.backend, 0, out.share.threads);
  const DeviceInfo device = out.device->info();
  info.device_name = device.name;
  info.device_kind = device.kind;
  info.threads = device.threads;
  info.memory_total = device.memory_total;
  info.memory_free = device.memory_free;
  if (measure_peak) {
    barrier_now(world.comm(), world.wait());
    Stream stream(*out.device);
    const DType dtype = compute_dtype(config.section("train").text("dtype"));  // a backend without it is refused with the plan
    if (out.device->supports(NSP_OP_matmul, dtype)) info.peak_gflops = measure_matmul_peak(stream, dtype);
  }
  out.topology = gather();
  return out;
}

void require_ops(World& world, const Device& device, const ModelSpec& spec, DType dtype, const Optimizer* optimizer) {
  std::string refusal;
  try {
    check_ops(device, spec, dtype, optimizer);
  } catch (const Error& e) {
    refusal = e.what();
  }
  world.agree(ErrorKind::plugin, refusal);
}

}  // namespace nsp
