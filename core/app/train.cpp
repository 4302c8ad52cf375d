// nsp_app train: from the command line to the loop and back. Each stage is one call; design and docs/tour.md tell the order.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/app/end_of_run.hpp"
#include "core/app/job_question.hpp"
#include "core/app/model_source.hpp"
#include "core/app/training_data.hpp"
#include "core/app/verbs.hpp"
#include "core/data/byte_tokenizer.hpp"
#include "core/device/byte_text.hpp"
#include "core/plan/report.hpp"
#include "core/train/line_file.hpp"
#include "core/train/restore.hpp"
#include "core/train/text_generator.hpp"
#include "core/train/trainer.hpp"
#include "io/hdf5_store.hpp"

namespace nsp {
namespace {

constexpr const char* sample_prompt = "/* ";

// A run directory belongs to one model and one data; what else changed is only told.
void check_changes(Session& session, const ResumePoint& from) {
  if (!from.reader) return;
  std::string refused;
  for (const Config::Change& change : session.config().changes(from.config)) {
    const std::string line = change.key + ": " + change.stored + " -> " + change.now;
    if (change.key.rfind("model.", 0) == 0)
      refused += (refused.empty() ? "" : "; ") + line;
    else if (change.key != "plugins" || change.stored != change.now)
      session.log().info("changed since the checkpoint: " + line);
  }
  if (!refused.empty())
    throw Error(ErrorKind::usage, "the run directory holds a run of another model (" + refused +
                                      "). A checkpoint fits its own model only. Leave these keys out, or choose another --run.dir.");
}

int64_t steps_of(const Options& train, int64_t tokens_per_step) {
  const std::string tokens = train.text("tokens");
  return tokens == "auto" ? train.integer("steps") : (parse::size(tokens) + tokens_per_step - 1) / tokens_per_step;
}

TrainSettings settings_of(const Config& config, int64_t context, const ModelSpec& spec, double peak_gflops) {
  const Options& train = config.section("train");
  TrainSettings s;
  s.steps = steps_of(train, train.integer("global_batch") * context);
  s.schedule = {schedule_kind(train.text("schedule")),
                train.number("lr"),
                train.number("min_lr_ratio"),
                train.integer("warmup"),
                s.steps,
                train.number("wsd_decay")};
  s.clip = train.number("clip");
  s.eval_every = train.integer("eval_every");
  s.eval_batches = train.integer("eval_batches");
  s.checkpoint_every = train.integer("checkpoint_every");
  s.max_bad_steps = train.integer("max_bad_steps");
  s.verify_every = config.section("run").integer("verify_every");
  s.flops_per_token = spec.flops_per_token(context);
  s.peak_flops = peak_gflops * 1e9;
  return s;
}

void check_data(const ResumePoint& from, const TokenSource& data) {
  if (!from.reader) return;
  const Attributes& a = from.reader->attributes();
  const auto stored = [&](const char* key) { return a.count(key) ? a.at(key) : std::string(); };
  if (stored("data.tokenizer") != data.tokenizer())
    throw Error(ErrorKind::usage, "the data's tokenizer is " + data.tokenizer() + ", and the run was trained with " +
                                      stored("data.tokenizer") +
                                      " (data.path). Token ids would change their meaning. Use the run's own data, or another --run.dir.");
  if (stored("data.fingerprint") != data.fingerprint())
    throw Error(ErrorKind::usage,
                "data.path is other data than this run was trained on (fingerprint " + data.fingerprint() + ", and " +
                    stored("data.fingerprint") +
                    " in the checkpoint). The run could not go on where it stopped. Use the run's own data, or another --run.dir.");
}

// Equal configurations on all ranks, or one error that names a rank.
void compare_config(World& world, const Config& config) {
  const uint64_t own = config.hash();
  const std::vector<char> all = gather_now(world.comm(), world.wait(), &own, sizeof own);
  for (std::size_t r = 0; r < all.size() / sizeof own; ++r)
    if (std::memcmp(&all[r * sizeof own], &own, sizeof own) != 0)
      throw Error(ErrorKind::usage, "rank " + std::to_string(r) + " has another configuration than rank " + std::to_string(world.rank()) +
                                        ". Files, environment or program differ between the hosts. Give all ranks the same command line, "
                                        "configuration files and NSP_ variables.");
}

// A young model writes any bytes; a terminal shall not obey them.
std::string printable(std::string text) {
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '.';
  return text;
}

class TrainRun {
 public:
  TrainRun(Session& session, World& world)
      : session_(session), log_(session.log()), world_(world), directory_(session, world, session.line().core("run", {}).text("dir")) {}

  int run() {
    from_ = find_resume_point(session_, world_, directory_, session_.line().core("run", {}).text("resume"));
    session_.configure(from_.config);
    const Config& config = session_.config();
    compare_config(world_, config);
    check_changes(session_, from_);
    reuse_stored_plan();
    device_ = open_device(session_, world_, true, stored_threads());
    log_.info(device_.share.text);
    std::optional<ModelSpec> stored;
    if (from_.reader) stored = parse_spec(from_.reader->attributes().at("model"));
    source_ = model_source(&world_, config, stored, log_);
    const std::string context = config.section("train").text("context");
    context_ = context == "auto" ? source_.spec.context : parse::integer(context);
    data_ = open_training_data(session_, world_, directory_, source_.spec, context_, !from_.reader);
    check_data(from_, *data_.train);
    const int code = train();
    barrier_now(world_.comm(), world_.wait());
    return code;
  }

 private:
  PlanQuestion question() const {
    PlanQuestion q = job_question(session_, source_.spec, device_.topology);
    std::vector<std::string> backends;
    for (const RankInfo& rank : device_.topology.ranks) backends.push_back(rank.backend);
    if (!stored_plan_.empty() && stored_plan_.at("backend") == by_rank(backends)) {
      q.micro_batch = parse::integer(stored_plan_.at("micro_batch"));
      q.memory_budget = parse::integer(stored_plan_.at("memory_budget"));
    }
    return q;
  }

  int stored_threads() const {
    const std::string own = stored_plan_.count("threads") ? value_of_rank(stored_plan_.at("threads"), world_.rank()) : "";
    return own.empty() ? 0 : static_cast<int>(parse::integer(own));
  }

  // What was chosen automatically stays chosen as long as ranks, plug-ins and keys that the plan depends on are those of the
  // checkpoint: then equal bits are promised. Otherwise the plan is made anew, and compare_plan tells what changed.
  void reuse_stored_plan() {
    if (!from_.reader || from_.reader->attributes().count("plan") == 0) return;
    const std::map<std::string, std::string> plan = plan_values(from_.reader->attributes().at("plan"));
    bool same =
        plan.at("ranks") == std::to_string(world_.comm().size()) && from_.reader->attributes().at("plugins") == session_.plugin_names();
    for (const Config::Change& change : session_.config().changes(from_.config))
      if (change.key == "train.global_batch" || change.key == "train.micro_batch" || change.key == "train.context" ||
          change.key == "train.threads" || change.key == "train.dtype" || change.key.rfind("autosp.", 0) == 0)
        same = false;
    if (same) stored_plan_ = plan;
  }

  // A short name that goes into the shards' names.
  std::string run_id() const {
    std::string run = std::filesystem::path(directory_.path()).lexically_normal().filename().string();
    for (char& c : run) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    return run.empty() ? "run" : run;
  }

  Attributes attributes(const Planned& planned) const {
    Attributes all = from_.origin();
    all.merge(Attributes{{"config", session_.config().dump()},
                         {"plan", planned.plan.text()},
                         {"plugins", session_.plugin_names()},
                         {"model", spec_text(source_.spec)},
                         {"data.fingerprint", data_.train->fingerprint()},
                         {"data.tokenizer", data_.train->tokenizer()},
                         {"nsp_version", NSP_VERSION}});
    return all;
  }

  // Once the run is known to go on: a start that is refused leaves the files as they are.
  void write_plan(const std::string& report) {
    if (world_.rank() != 0) return;
    replace_file(directory_.path() + "/plan.txt", report);
    replace_file(directory_.path() + "/config.ini", session_.config().dump());
  }

  void compare_plan(const Planned& planned) {
    if (!from_.reader || from_.reader->attributes().count("plan") == 0) return;
    std::map<std::string, std::string> stored = plan_values(from_.reader->attributes().at("plan"));
    stored["plugins"] = from_.reader->attributes().at("plugins");
    std::string changes;
    for (const auto& [key, value] : plan_values(planned.plan.text()))
      if (const auto it = stored.find(key); key != "memory_budget" && it != stored.end() && it->second != value)
        changes += "\n  " + key + ": " + it->second + " -> " + value;
    if (!changes.empty())
      log_.warning("the plan differs from the checkpoint's, so from here on results are not equal bit for bit to an uninterrupted run:" +
                   changes);
  }

  int train() {
    const Config& config = session_.config();
    const Options& train = config.section("train");
    const Session::PolicySet set = session_.create_policies();
    const Policies policies = set.refs();
    Transformer model(source_.spec);
    const PlanQuestion q = question();
    const Planned planned = plan_job(q, model, policies);
    const std::string report = plan_report(planned, model);
    log_.info(report);
    compare_plan(planned);
    require_ops(world_, *device_.device, source_.spec, planned.plan.dtype, &policies.optimizer);
    if (world_.host().memory_limited && !all_fit(planned.checks))
      log_.warning("a control group limits this host's ranks to " + byte_text(world_.host().memory_total) + " of memory");
    require_fit_or_advise(session_, planned, q, model, policies);
    const TrainSettings settings = settings_of(config, context_, source_.spec, device_.topology.peak_gflops());

    Job job(planned, q.bucket_elements, world_.comm(), *device_.device, model, policies, world_.wait(), log_);
    const Job::Drain early_drain(job);  // before the job's memory goes away, if anything from here on fails
    TrainParts& parts = job.parts();
    Restored restored;
    if (from_.reader)
      restored = restore_states(parts, *from_.reader);
    else
      source_.fill(job, static_cast<uint64_t>(train.integer("seed")));
    const TrainState& state = restored.state;
    if (from_.reader && state.step >= settings.steps && !state.evaluation_due) {
      log_.info("the run in " + directory_.path() + " is complete: " + std::to_string(state.step) + " of " +
                std::to_string(settings.steps) + " steps. To go on, raise train.steps.");
      return exit_code::done;
    }
    write_plan(report);
    MeanWeights mean(parts, q.bucket_elements);
    Hdf5Store store(directory_.checkpoints());
    Checkpointer checkpointer(parts, mean, store, run_id(), attributes(planned), static_cast<int>(train.integer("keep")),
                              train.integer("keep_every"));
    const BatchOrder order(data_.train->corpora(), train.integer("global_batch"), config.section("data").flag("shuffle"),
                           static_cast<uint64_t>(train.integer("seed")));
    log_.info(order.coverage(settings.steps));
    BatchLoader loader(*device_.device, parts.stream, world_.wait(), job.shape(), data_.documents, source_.spec.vocab);
    Metrics metrics(world_.rank() == 0 ? directory_.path() + "/metrics.jsonl" : "", from_.reader ? state.step : -1, log_every(),
                    settings.steps, log_);
    if (config.section("run").flag("tensorboard")) metrics.write_events(directory_.path() + "/tensorboard");
    if (shows_progress()) metrics.show_progress(log_);
    if (from_.reader) {
      metrics.record(resume_record(restored));
      log_.info("resumed from step " + std::to_string(state.step) + " (" + order.position(state.step) + ")");
      for (const std::string& line : restored_lines(restored)) log_.info(line);
    }
    TextGenerator generator(parts, loader);
    StopRequests requests(directory_.path(), train.number("max_hours") * 3600.0, world_.rank() == 0);
    Trainer trainer(parts, {*data_.train, data_.validation.get(), order, loader, metrics, mean, checkpointer, requests, {}}, settings,
                    state);
    const Job::Drain drain(job);  // ends first, whatever happens: nothing queued may outlive its memory, the trainer's included
    const Outcome outcome = trainer.run();
    metrics.end_progress();
    finish(trainer, metrics, outcome, state.step, planned);
    if (outcome == Outcome::finished) sample(generator, mean);
    log_.info("log: " + directory_.path() + "/metrics.jsonl   checkpoints: " + directory_.checkpoints());
    return outcome == Outcome::finished ? exit_code::done : exit_code::stopped;
  }

  bool shows_progress() {
    const std::string wanted = session_.config().section("run").text("progress");
    if (world_.rank() != 0 || (wanted != "auto" && !parse::flag(wanted))) return false;
    std::optional<Terminal> terminal = Terminal::find(!session_.launch().launcher.empty());
    const bool shows = wanted != "auto" || terminal;
    log_.use_terminal(std::move(terminal));
    return shows;
  }

  // The progress line tells each step; lines beside it only if they are asked for.
  int64_t log_every() {
    const Options& run = session_.config().section("run");
    return run.given("log_every") || !shows_progress() ? run.integer("log_every") : 0;
  }

  void finish(const Trainer& trainer, Metrics& metrics, Outcome outcome, int64_t first_step, const Planned& planned) {
    const RunEnd end{trainer.breakdown(), trainer.state().step, first_step, outcome == Outcome::finished};
    const std::string text = report_end(world_, metrics, end, run_facts(session_.plugin_names(), planned, device_.topology));
    if (metrics.seconds_in_steps() > 0)
      log_.info(std::to_string(static_cast<int64_t>(static_cast<double>(metrics.tokens()) / metrics.seconds_in_steps())) +
                " tokens/s over " + std::to_string(trainer.state().step - first_step) + " steps");
    log_.info(text);
  }

  void sample(TextGenerator& generator, MeanWeights& mean) {
    if (data_.train->tokenizer() != ByteTokenizer().id()) return;
    const ByteTokenizer tokenizer;
    mean.install();
    std::vector<int32_t> prompt;
    tokenizer.encode(sample_prompt, prompt);
    const std::vector<int32_t> tokens = generator.generate(prompt, 160, {0.7, 40, 1, tokenizer.vocabulary()});
    mean.restore();
    log_.info("sample: " + printable(sample_prompt + tokenizer.decode(tokens)));
  }

  Session& session_;
  ConsoleLog& log_;
  World& world_;
  RunDirectory directory_;
  ResumePoint from_;
  std::map<std::string, std::string> stored_plan_;  // that this run reuses; empty: none
  RankDevice device_;
  ModelSource source_;
  int64_t context_ = 0;
  TrainingData data_;
};

}  // namespace

int run_train(Session& session) {
  const SignalHandlers handlers;
  session.log().outlive_readers();
  World world(session, false);
  int code = exit_code::error;
  try {
    TrainRun run(session, world);
    code = run.run();
  } catch (const std::exception& e) {
    return end_with_error(world, e);
  }
  world.close();
  return code;
}

}  // namespace nsp
