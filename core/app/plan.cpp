// nsp_app plan: what would run where, with the memory it needs and the bytes it sends, on this machine or on one that is
// described. Runs nothing, opens no device and starts no MPI.
#include <algorithm>
#include <cstdio>

#include "core/app/job_question.hpp"
#include "core/app/model_source.hpp"
#include "core/app/verbs.hpp"
#include "core/discover/described_topology.hpp"
#include "core/plan/report.hpp"

namespace nsp {
namespace {

int64_t number_or(const Options& options, const char* name, int64_t otherwise) {
  const std::string text = options.text(name);
  return text == "auto" ? otherwise : parse::size(text);
}

// Ranks of this machine, as many as asked for, sharing the memory that is free now.
Topology this_machine(const std::vector<DeviceCount>& devices, MachineDescription machine, const HostInfo& here) {
  const int ranks = devices.front().count;
  const bool one_host = machine.per_host == 0 || machine.per_host >= ranks;
  if (machine.per_host == 0) machine.per_host = ranks;
  const bool as_it_is = machine.host_memory == 0 && machine.memory == 0;
  if (machine.host_memory == 0) machine.host_memory = here.memory_available;
  Topology topology = describe_topology(devices, machine, here);
  if (!one_host) return topology;
  topology.described = false;
  for (RankInfo& info : topology.ranks) {
    info.host = here.name;
    if (as_it_is) info.memory_total = info.host_memory_total = here.memory_total;
  }
  return topology;
}

// A backend that is named must be one that such a device has.
bool fits(const DeviceKind& kind, const std::string& backend) {
  if (!kind.is_cpu()) return kind.backend == backend || kind.backend.starts_with(backend + "_");
  const std::vector<DeviceKind>& all = device_kinds();
  return std::none_of(all.begin(), all.end(), [&](const DeviceKind& other) { return !other.is_cpu() && fits(other, backend); });
}

void require_backend_of(const std::vector<DeviceCount>& devices, const std::string& backend) {
  for (const DeviceCount& entry : devices) {
    if (backend == "auto" || fits(entry.kind, backend)) continue;
    throw Error(ErrorKind::usage, "backend = " + backend + " does not fit --devices " + entry.kind.key + ". Such a device needs " +
                                      entry.kind.backend + ". Give --backend auto: each kind of device has its own.");
  }
}

Topology planned_topology(Session& session, const HostInfo& here) {
  const Options &verb = session.config().section("plan"), &train = session.config().section("train");
  const auto ranks = static_cast<int>(number_or(verb, "ranks", 0));
  MachineDescription machine;
  machine.per_host = static_cast<int>(number_or(verb, "per-host", 0));
  machine.memory = number_or(verb, "memory", 0);
  machine.host_memory = number_or(verb, "host-memory", 0);
  machine.threads = static_cast<int>(number_or(train, "threads", 0));
  machine.dtype = train.text("dtype") == "bf16" ? DType::bf16 : DType::f32;
  const std::string backend = session.config().section("").text("backend");
  const bool described = !verb.text("devices").empty();
  const std::vector<DeviceCount> devices =
      described ? parse_devices(verb.text("devices")) : std::vector<DeviceCount>{{find_device_kind("cpu"), std::max(ranks, 1)}};
  if (described) require_backend_of(devices, backend);
  // A module is needed only for its name, and for processors only: their kind is this machine's.
  if (std::any_of(devices.begin(), devices.end(), [](const DeviceCount& entry) { return entry.kind.is_cpu(); }))
    machine.cpu_backend = session.registry().choose_backend(backend).note.name;
  if (!described) return this_machine(devices, machine, here);
  const Topology topology = describe_topology(devices, machine, here);
  if (ranks > 0 && topology.ranks.size() != static_cast<std::size_t>(ranks))
    throw Error(ErrorKind::usage, "--devices " + verb.text("devices") + " are " + std::to_string(topology.ranks.size()) +
                                      " devices, and --ranks is " + std::to_string(ranks) +
                                      ". Every rank has one device. Leave --ranks out, or make the two agree.");
  return topology;
}

}  // namespace

int run_plan(Session& session) {
  session.configure({});
  const Session::PolicySet set = session.create_policies();
  const Policies policies = set.refs();
  const ModelSource source = model_source(nullptr, session.config(), {}, session.log());
  Transformer model(source.spec);
  const Topology topology = planned_topology(session, read_host());
  const PlanQuestion question = job_question(session, source.spec, topology);
  const Planned planned = plan_job(question, model, policies);
  std::fputs(plan_report(planned, model).c_str(), stdout);
  std::fflush(stdout);
  require_fit_or_advise(session, planned, question, model, policies);
  return exit_code::done;
}

}  // namespace nsp
