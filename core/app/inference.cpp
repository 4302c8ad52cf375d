#include "core/app/inference.hpp"

#include "core/app/open_checkpoint.hpp"
#include "core/tensor/core_states.hpp"

namespace nsp {

Inference::Inference(Session& session) : world_(session, true) {
  session.configure({});
  const Options& run = session.config().section("run");
  const std::string resume = run.text("resume");
  reader_ = open_checkpoint(resume == "auto" ? run.text("dir") : resume, session.log());
  const Attributes& attributes = reader_->attributes();
  if (attributes.count("config")) stored_ = read_stored(attributes.at("config"));
  model_ = std::make_unique<Transformer>(parse_spec(attributes.count("model") ? attributes.at("model") : ""));
  device_ = open_device(session, world_, false);
  const auto stored_context = stored_.find("train.context");
  planned_.plan.context = stored_context == stored_.end() || stored_context->second.text == "auto"
                              ? spec().context
                              : parse::integer(stored_context->second.text);
  planned_.plan.parallel.token_cuts = {0, planned_.plan.context};
  planned_.plan.shares = {1};
  planned_.plan.threads = device_.share.threads;
  planned_.plan.backend = device_.backend;
  planned_.states = {weights_decl()};
  policies_ = std::make_unique<Session::PolicySet>(session.create_policies());
  job_ = std::make_unique<Job>(planned_, 1, world_.comm(), *device_.device, *model_, policies_->refs(), world_.wait(), session.log());
  const Job::Drain drain(*job_);  // a checkpoint that cannot be read leaves work in the queue, and the memory goes away
  restore_model(job_->parts(), *reader_);
}

Inference::~Inference() {
  job_.reset();
  policies_.reset();
  device_.device.reset();
  world_.close();
}

}  // namespace nsp
