// The sync policy `faulty`: ddp or desloc with one fault at a chosen step of a chosen rank, so that tests meet it at the same place
// in every run: a gradient that is not a number, an exception, a process that stops, hangs or kills itself, a step that takes long.
#include <dlfcn.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "nsp/plugin.hpp"
#include "nsp/sync_policy.hpp"

extern const nsp_plugin_v1 nsp_builtin_sync_ddp;

namespace nsp::test {
namespace {

const nsp_plugin_v1& inner_plugin(const std::string& name) {
  if (name == "ddp") return nsp_builtin_sync_ddp;
  const char* folder = std::getenv("NSP_PLUGIN_PATH");
  const std::string path = std::string(folder ? folder : "") + "/libnsp_sync_" + name + ".so";
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* symbol = module ? dlsym(module, "nsp_plugin") : nullptr;
  if (symbol == nullptr) throw Error(ErrorKind::plugin, "the test needs " + path + ". It cannot be loaded. Build it.");
  return *static_cast<const nsp_plugin_v1*>(symbol);
}

int this_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(variable)) return std::atoi(rank);
  return 0;
}

class Faulty final : public SyncPolicy {
 public:
  explicit Faulty(const PluginContext& context)
      : plugin_(inner_plugin(context.options.text("inner"))),
        inner_(static_cast<SyncPolicy*>(plugin_.create(&context))),
        fault_(context.options.text("fault")),
        first_(context.options.integer("at")),
        last_(first_ + context.options.integer("steps") - 1),
        here_(context.options.integer("rank") == this_rank()) {}
  ~Faulty() override { plugin_.destroy(inner_); }

  bool sums_gradients() const override { return inner_->sums_gradients(); }
  bool replicas_differ(int replicas) const override { return inner_->replicas_differ(replicas); }
  std::vector<StateDecl> declare(const std::vector<StateDecl>& states, int replicas) override { return inner_->declare(states, replicas); }
  std::vector<TrafficLine> traffic(int64_t parameters, int replicas) const override { return inner_->traffic(parameters, replicas); }
  int64_t staging_bytes(int replicas, int64_t bucket_elements) const override { return inner_->staging_bytes(replicas, bucket_elements); }
  std::string synced(int64_t t) const override { return inner_->synced(t); }
  void open(const SyncContext& context) override {
    context_.emplace(context);
    inner_->open(context);
  }
  void begin_step(int64_t t) override {
    t_ = t;
    done_ = false;
    inner_->begin_step(t);
  }
  // In the middle of backward, with whatever the policy has started in flight.
  void gradient_ready(Range range, TensorView gradient, const After& after) override {
    const bool now = here_ && t_ >= first_ && t_ <= last_ && !done_ && !range.empty();
    if (!now) return inner_->gradient_ready(range, gradient, after);
    done_ = true;
    if (fault_ == "nan") return inner_->gradient_ready(range, gradient, {poison(gradient), after.work});
    commit_fault();
    inner_->gradient_ready(range, gradient, after);
  }
  void finish_step(int64_t t) override { inner_->finish_step(t); }
  void quiesce() override { inner_->quiesce(); }

 private:
  // Alone in its replica a rank's sums are its own, so what is enqueued now is what the policy and the optimizer see.
  EventPtr poison(TensorView gradient) {
    Ops(context_->stream).scale(gradient.slice(0, 1), std::nan(""));
    auto event = std::make_shared<Event>(context_->stream.device(), "poison");
    event->record(context_->stream);
    return event;
  }

  void commit_fault() {
    std::fprintf(stderr, "faulty: %s on rank %d in step %lld\n", fault_.c_str(), this_rank(), static_cast<long long>(t_ + 1));
    if (fault_ == "stop") raise(SIGSTOP);
    if (fault_ == "kill") raise(SIGKILL);
    if (fault_ == "throw") throw std::runtime_error("a plug-in gave up");
    if (fault_ == "throw_diverged") throw Error(ErrorKind::diverged, "a plug-in found nonsense. It was asked to. Do not ask it.");
    if (fault_ == "hang") std::this_thread::sleep_for(std::chrono::hours(1));  // goes on to sleep after a signal
    if (fault_ == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }

  const nsp_plugin_v1& plugin_;
  SyncPolicy* inner_;
  const std::string fault_;
  const int64_t first_, last_;  // steps t
  const bool here_;
  std::optional<SyncContext> context_;
  int64_t t_ = 0;
  bool done_ = false;  // in this step
};

const nsp_option rows[] = {
    {"inner", "choice:ddp|desloc", "ddp", "the policy that is spoilt"},
    {"fault", "choice:nan|stop|hang|kill|throw|throw_diverged|sleep", "nan", "what happens"},
    {"at", "int", "0", "first step t with the fault, from 0"},
    {"steps", "int", "1", "steps with the fault"},
    {"rank", "int", "0", "rank with the fault"},
    {"kx", "period", "32", "of desloc"},
    {"ku", "period", "96", "of desloc"},
    {"kv", "period", "192", "of desloc"},
    {"warmup_steps", "int", "0", "of desloc"},
    {"reduce_dtype", "choice:fp32", "fp32", "of both"},
};

}  // namespace
}  // namespace nsp::test

NSP_PLUGIN("sync", "faulty", NSP_VERSION, "ddp or desloc with a fault, for tests", nsp::SyncPolicy, nsp::test::Faulty, nsp::test::rows);
