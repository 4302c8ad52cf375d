// nsp_app bench ops: how fast each op of the backend's table is on the shapes of a training step, beside what this machine can do.
#include <cstdio>
#include <set>
#include <vector>

#include "core/app/bench_report.hpp"
#include "core/app/model_source.hpp"
#include "core/app/verbs.hpp"
#include "core/config/command_line.hpp"
#include "core/config/suggest.hpp"
#include "core/plan/plan.hpp"

namespace nsp {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a long table is watched
}

bench::StepShape step_of(Session& session) {
  bench::StepShape step;
  const Options& train = session.config().section("train");
  step.spec = model_source(nullptr, session.config(), {}, session.log()).spec;
  step.context = train.text("context") == "auto" ? step.spec.context : train.integer("context");
  if (step.context > step.spec.context)
    throw Error(ErrorKind::usage, "train.context = " + std::to_string(step.context) +
                                      " is longer than model.context = " + std::to_string(step.spec.context) +
                                      ". The model has no positions beyond it. Lower train.context or raise model.context.");
  constexpr int64_t enough = 4096;  // sequences of a step, so that auto is not limited by them
  step.micro_batch = train.text("micro_batch") == "auto" ? auto_micro_batch(enough, step.context) : train.integer("micro_batch");
  return step;
}

std::vector<DType> dtypes_of(const Config& config) {
  if (config.section("bench").flag("all-dtypes")) return {DType::f32, DType::bf16};
  return {compute_dtype(config.section("train").text("dtype"))};
}

std::string model_text(const Options& model, const ModelSpec& spec) {
  return spec.family + " (preset " + model.text("preset") + "): " + std::to_string(spec.layers) + " blocks, hidden " +
         std::to_string(spec.hidden) + ", " + std::to_string(spec.heads) + " heads, ffn " + std::to_string(spec.ffn) + ", vocabulary " +
         std::to_string(spec.vocab) + ", " + std::to_string(spec.parameters()) + " parameters";
}

// The ops that --only names; all where it is not given. "references" is none of them.
std::set<std::string> chosen_ops(const std::string& only) {
  std::vector<std::string> names;
  for (int op = 0; op < NSP_OP_COUNT; ++op) names.push_back(op_name(static_cast<nsp_op>(op)));
  const std::set<std::string> all(names.begin(), names.end());
  if (only.empty()) return all;
  std::set<std::string> chosen;
  for (const std::string& name : split_names(only, ',')) {
    if (name == "references") continue;
    if (all.count(name) == 0)
      throw Error(ErrorKind::usage, "--only " + only + " names " + name + ", which is no op. The ops are " + comma_list(names) +
                                        ". Name some of them, or write --only references for none.");
    chosen.insert(name);
  }
  return chosen;
}

void bench_ops(Session& session, World& world) {
  const Options& verb = session.config().section("bench");
  const bool json = verb.flag("json");
  const std::set<std::string> chosen = chosen_ops(verb.text("only"));
  BenchHeader header;
  header.step = step_of(session);
  header.model = model_text(session.config().section("model"), header.step.spec);
  const RankDevice rank = open_device(session, world, false);
  header.backend = rank.backend;
  header.device = rank.device->info();
  header.working_set = verb.text("working-set") == "auto" ? bench::beyond_cache(header.device.memory_free) : verb.integer("working-set");
  const bench::MeasureOptions options{verb.number("seconds"), header.working_set};
  Stream stream(*rank.device);
  print(json ? header_json(header) + "\n" : header_text(header));
  const bench::StreamRate rate = bench::stream_rate(stream, options.seconds, header.working_set);
  bool others = false;
  for (const DType dtype : dtypes_of(session.config())) {
    const BenchReferences references{dtype, bench::matmul_peak(stream, dtype, options.seconds),
                                     bench::fma_peak(stream, dtype, options.seconds), rate};
    std::vector<bench::OpCase> cases = bench::op_cases(header.step, dtype);
    std::erase_if(cases, [&](const bench::OpCase& c) { return chosen.count(op_name(c.op)) == 0; });
    const BenchTable table(cases);
    print(json ? references_json(references) + "\n" : references_text(references) + (cases.empty() ? "" : table.head()));
    for (const bench::OpCase& c : cases) {
      const bench::OpTime time = bench::measure(stream, c, options);
      print(json ? row_json(c, time, references) + "\n" : table.row(c, time, references));
      others |= !c.in_family;
    }
  }
  if (others && !json) print("\n* not an op of this model: with its sizes all the same\n");
}

}  // namespace

int run_bench(Session& session) {
  const Launch& launch = session.launch();
  if (launch.world_size > 1)
    throw Error(ErrorKind::usage, "bench ops is for a single process, and " + launch.launcher + " started " +
                                      std::to_string(launch.world_size) +
                                      ". They would disturb each other and print as many tables. Start it without " + launch.launcher +
                                      ", with --train.threads as a rank would have them.");
  session.configure({});
  World world(session, true);
  try {
    bench_ops(session, world);
  } catch (const std::exception& e) {
    return end_with_error(world, e);
  }
  world.close();
  return exit_code::done;
}

}  // namespace nsp
