#include "core/app/inference.hpp"

#include <algorithm>
#include <filesystem>

#include "core/app/open_checkpoint.hpp"
#include "core/plan/kernel_memory.hpp"
#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

constexpr const char* advice =
    "Use a machine with more memory, fewer ranks on this host, or a shorter context (--train.context) if the model allows it.";

}  // namespace

Inference::Inference(Session& session, World& world, const InferenceNeeds& needs) : session_(session), world_(world) {
  session.configure({});
  const Options& run = session.config().section("run");
  const std::string resume = run.text("resume");
  const std::string path = resume == "auto" ? run.text("dir") : resume;
  reader_ = open_checkpoint(&world, path, session.log());
  std::filesystem::path above = std::filesystem::path(checkpoint_path(path).folder + "/..").lexically_normal();
  if (!above.has_filename()) above = above.parent_path();  // "runs/a/" is "runs/a"
  run_directory_ = above.string();
  const Attributes& attributes = reader_->attributes();
  if (attributes.count("config")) stored_ = read_stored(attributes.at("config"));
  model_ = std::make_unique<Transformer>(parse_spec(attributes.count("model") ? attributes.at("model") : ""));
  device_ = open_device(session, world, false);
  plan(needs);
  require_ops(world, *device_.device, spec(), planned_.plan.dtype, nullptr);
  policies_ = std::make_unique<Session::PolicySet>(session.create_default_policies());  // nothing is trained here
  require_fit(check_memory(planned_.plan, planned_.kinds, device_.topology), advice);
  job_ = std::make_unique<Job>(planned_, world.comm().size(), world.comm(), *device_.device, *model_, policies_->refs(), world.wait(),
                               session.log());
  const Job::Drain drain(*job_);  // a checkpoint that cannot be read leaves work in the queue, and the memory goes away
  restore_model(job_->parts(), *reader_);
}

std::string Inference::value(const std::string& section, const std::string& name) const {
  const Options& now = session_.config().section(section);
  const auto it = stored_.find(section + "." + name);
  return now.given(name) || it == stored_.end() ? now.text(name) : it->second.text;
}

void Inference::plan(const InferenceNeeds& needs) {
  JobPlan& plan = planned_.plan;
  const std::string context = value("train", "context");
  plan.context = context == "auto" ? spec().context : parse::integer(context);
  if (plan.context > spec().context)
    throw Error(ErrorKind::usage, "train.context = " + context + " is longer than the model's context of " +
                                      std::to_string(spec().context) + ". The model has no positions beyond it. Lower train.context.");
  plan.ranks = plan.replicas = world_.comm().size();
  plan.parallel.token_cuts = {0, plan.context};
  plan.micro_batch = std::max<int64_t>(1, needs.tokens_at_once / plan.context);
  plan.shares.assign(static_cast<std::size_t>(plan.ranks), plan.micro_batch);
  plan.global_batch = plan.micro_batch * plan.ranks;
  plan.dtype = compute_dtype(value("train", "dtype"));
  planned_.states = {weights_decl(plan.dtype)};  // and no master: what is read is rounded when it is loaded
  planned_.head_shares = {{0, spec().heads, 0, spec().kv_heads}};
  planned_.topology = device_.topology;

  const BatchShape shape = plan.shape(0, planned_.head_shares[0], false);
  ActivationPlanner activations;
  model_->plan(activations, shape);
  PositionKind kind{{0}, {}};
  std::vector<MemoryLine>& lines = kind.memory.lines;
  int64_t weights = 0;
  for (const Segment& segment : model_->table().segments()) weights += segment.storage * static_cast<int64_t>(size_of(plan.dtype));
  lines.push_back({"weights", "", "device", weights});
  add_activations(kind.memory, activations);
  if (const std::vector<int> threads = cpu_threads_by_position(plan, device_.topology); !threads.empty())
    add_kernels(kind.memory, kernel_memory(spec(), shape, threads.front(), 0, Passes::forward));
  lines.push_back({"data", "", "device", BatchLoader::device_bytes(shape)});
  lines.push_back({"staging: data", "", "pinned", BatchLoader::host_bytes(shape)});
  lines.push_back({"staging: checkpoint", "", "pinned", Checkpointer::staging_bytes()});
  for (MemoryLine& line : needs.more(spec(), plan)) lines.push_back(std::move(line));
  planned_.kinds = {std::move(kind)};
}

Inference::~Inference() {
  job_.reset();
  policies_.reset();
  device_.device.reset();
}

}  // namespace nsp
