// nsp_app plan: what would run where on this machine, with the memory it needs and the bytes it sends. Runs nothing.
#include <algorithm>
#include <cstdio>

#include "core/app/model_source.hpp"
#include "core/app/verbs.hpp"

namespace nsp {

int run_plan(Session& session) {
  session.configure({});
  const Config& config = session.config();
  const Options &verb = config.section("plan"), &train = config.section("train");
  const Session::PolicySet set = session.create_policies();
  const Policies policies = set.refs();
  const ModelSource source = model_source(config, {}, session.log());
  Transformer model(source.spec);
  const HostInfo host = read_host();
  PlanQuestion q;
  q.ranks = verb.text("ranks") == "auto" ? 1 : static_cast<int>(parse::integer(verb.text("ranks")));
  q.global_batch = train.integer("global_batch");
  q.micro_batch = train.text("micro_batch") == "auto" ? 0 : parse::integer(train.text("micro_batch"));
  q.context = train.text("context") == "auto" ? source.spec.context : parse::integer(train.text("context"));
  q.threads = train.text("threads") == "auto" ? std::max(1, static_cast<int>(host.cores.count()) / q.ranks)
                                              : static_cast<int>(parse::integer(train.text("threads")));
  q.backend = session.registry().choose_backend(config.section("").text("backend")).note.name;
  q.bucket_elements = config.section("comm").integer("bucket_mib") * ((1 << 20) / 4);
  MemoryRoom room;
  room.ranks_on_host = q.ranks;
  room.host_free = host.memory_available;
  if (verb.text("memory") != "auto") {
    room.ranks_on_host = 1;
    room.host_free = parse::size(verb.text("memory"));
  }
  q.memory_budget = room.host_free / room.ranks_on_host;
  q.loop_memory = [&](MemoryTable& table, const BatchShape& shape) { add_loop_memory(table, shape, source.spec); };
  const Planned planned = plan_job(q, model, policies);
  std::fputs(plan_report(planned, model).c_str(), stdout);
  std::fflush(stdout);
  check_fits(planned.memory, room,
             "Lower model sizes or train.micro_batch, start fewer ranks on a host, or share sequences with --plugins autosp.");
  return exit_code::done;
}

}  // namespace nsp
