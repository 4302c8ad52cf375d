#include "tests/train/local_job.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "comm/local.hpp"
#include "core/plan/report.hpp"
#include "core/train/job.hpp"
#include "core/train/restore.hpp"
#include "nsp/plugin.hpp"
#include "tests/support/cpu_backend.hpp"
#include "tests/support/fake_device.hpp"

extern const nsp_plugin_v1 nsp_builtin_sync_ddp, nsp_builtin_parallel_dp, nsp_builtin_memory_resident, nsp_builtin_optimizer_adamw;

namespace nsp::test {
namespace {

class SilentLog : public Log {
 public:
  void info(const std::string&) override {}
  void warning(const std::string&) override {}
};

class SilentRing : public CollectiveRing {
 public:
  uint64_t entered(CollectiveRecord) override { return 0; }
  void waiting(uint64_t, const std::string&) override {}
  void finished(uint64_t) override {}
};

const nsp_plugin_v1* find_plugin(const std::string& kind, const std::string& name) {
  for (const nsp_plugin_v1* builtin :
       {&nsp_builtin_sync_ddp, &nsp_builtin_parallel_dp, &nsp_builtin_memory_resident, &nsp_builtin_optimizer_adamw})
    if (name == builtin->name) return builtin;
  const char* folder = std::getenv("NSP_PLUGIN_PATH");
  const std::string path = std::string(folder ? folder : ".") + "/libnsp_" + kind + "_" + name + ".so";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(ErrorKind::plugin, dlerror());
  return static_cast<const nsp_plugin_v1*>(dlsym(handle, "nsp_plugin"));
}

// One plug-in object with its options, as the loader would make it.
template <class Interface>
class Made {
 public:
  Made(const std::string& kind, const std::string& name, const std::map<std::string, std::string>& given, Log& log)
      : plugin_(find_plugin(kind, name)) {
    std::map<std::string, Options::Value> values;
    for (uint32_t i = 0; i < plugin_->option_count; ++i) {
      const nsp_option& row = plugin_->options[i];
      const auto it = given.find(name + "." + row.name);
      values[row.name] =
          it == given.end() ? Options::Value{row.default_value, "default", row.type} : Options::Value{it->second, "command line", row.type};
    }
    options_ = Options(name, std::move(values));
    const PluginContext context{options_, log};
    object_ = static_cast<Interface*>(plugin_->create(&context));
  }
  ~Made() { plugin_->destroy(object_); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  Interface& operator*() { return *object_; }

 private:
  const nsp_plugin_v1* plugin_;
  Options options_;
  Interface* object_;
};

struct Shared {
  const LocalSettings& settings;
  CheckpointStore& store;
  std::string metrics_path;
  std::mutex mutex;
  LocalResult result;
};

void run_rank(Shared& shared, Device& device, Communicator& world) {
  const LocalSettings& s = shared.settings;
  const int rank = world.rank();
  SilentLog log;
  HostWait wait;
  wait.add(&world);
  Made<SyncPolicy> sync("sync", s.sync, s.options, log);
  Made<ParallelStrategy> strategy("parallel", s.parallel, s.options, log);
  Made<LocCache> cache("memory", "resident", s.options, log);
  Made<Optimizer> optimizer("optimizer", s.optimizer, s.options, log);
  Transformer model(s.spec.completed());
  const Policies policies{*sync, *strategy, *cache, *optimizer};
  PlanQuestion question;
  question.ranks = s.ranks;
  question.threads = s.threads;
  question.global_batch = s.global_batch;
  question.micro_batch = s.micro_batch;
  question.context = s.context;
  question.dtype = s.dtype;
  question.backend = "cpu";
  question.bucket_elements = s.bucket_elements;
  question.loop_memory = [&](MemoryTable& table, const BatchShape& shape) { add_loop_memory(table, shape, model.spec()); };
  Planned planned = plan_job(question, model, policies);
  planned.states.insert(planned.states.end(), s.extra_states.begin(), s.extra_states.end());
  {
    Job job(planned, s.bucket_elements, world, device, model, policies, wait, log);
    TrainParts& parts = job.parts();
    MeanWeights mean(parts, s.bucket_elements);
    Checkpointer checkpointer(parts, mean, shared.store, "test", {{"config", ""}, {"plan", planned.plan.text()}}, 3, 0);
    TrainState state;
    if (s.resume) {
      const std::unique_ptr<CheckpointReader> reader = shared.store.open(shared.store.list().back());
      const Restored restored = restore_states(parts, *reader);
      state = restored.state;
      std::lock_guard lock(shared.mutex);
      if (rank == 0) shared.result.restored = restored;
    } else if (s.weights) {
      set_weights(parts, s.weights);
    } else {
      job.initialize_weights(s.seed);
    }
    const std::unique_ptr<DataSource> train = s.train_data();
    const std::unique_ptr<DataSource> val = s.val_data ? s.val_data() : nullptr;
    const BatchOrder order(train->samples(), s.global_batch, s.shuffle, s.seed);
    BatchLoader loader(device, parts.stream, wait, job.shape(), s.documents, model.spec().vocab);
    Metrics metrics(rank == 0 ? shared.metrics_path : "", s.resume ? state.step : -1, 0, s.train.steps, log);
    StopRequests requests("/nonexistent", 0, false);
    Trainer::Io io{*train, val.get(), order, loader, metrics, mean, checkpointer, requests, {}};
    io.on_group = [&](int64_t t, double loss, double norm) {
      if (s.on_step) s.on_step(parts, t);
      if (parts.position() != 0) return;
      std::lock_guard lock(shared.mutex);
      for (auto* table : {&shared.result.losses, &shared.result.norms})
        if (static_cast<int64_t>(table->size()) <= t)
          table->resize(static_cast<std::size_t>(t) + 1, std::vector<double>(static_cast<std::size_t>(planned.plan.replicas)));
      shared.result.losses[static_cast<std::size_t>(t)][static_cast<std::size_t>(parts.replica())] = loss;
      shared.result.norms[static_cast<std::size_t>(t)][static_cast<std::size_t>(parts.replica())] = norm;
    };
    if (s.before) s.before(parts);
    Trainer trainer(parts, io, s.train, state);
    const Job::Drain drain(job);
    trainer.run();
    const uint64_t hash = weight_hash(parts);
    std::lock_guard lock(shared.mutex);
    shared.result.weight_hashes[static_cast<std::size_t>(rank)] = hash;
    shared.result.times[static_cast<std::size_t>(rank)] = trainer.breakdown();
    if (rank == 0) {
      shared.result.planned = planned;
      shared.result.report = plan_report(planned, model);
      std::unique_ptr<CheckpointReader> reader;  // of the last checkpoint; a run without a step has none
      if (!shared.store.list().empty()) reader = shared.store.open(shared.store.list().back());
      for (const Param& param : model.table().params()) {
        if (!reader) break;
        std::vector<float> values(static_cast<std::size_t>(param.elements()));
        reader->get("/model/" + param.name, DType::f32, 0, param.elements(), values.data());
        shared.result.model[param.name] = std::move(values);
      }
    }
  }
  wait.remove(&world);
}

// The first failure by rank; one that only tells of another rank's end counts where there is no other.
void rethrow_cause(const std::vector<std::exception_ptr>& failures) {
  std::exception_ptr end_of_another;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::comm) throw;
      if (!end_of_another) end_of_another = failure;
    }
  }
  if (end_of_another) std::rethrow_exception(end_of_another);
}

}  // namespace

LocalSettings with_autosp(LocalSettings settings, int degree) {
  if (degree == 1) return settings;
  settings.ranks *= degree;
  settings.parallel = "autosp";
  settings.options["autosp.degree"] = std::to_string(degree);
  return settings;
}

LocalResult run_local(const LocalSettings& settings) {
  MemoryStore own_store;
  Shared shared{settings, settings.store ? *settings.store : own_store, {}, {}, {}};
  shared.result.weight_hashes.resize(static_cast<std::size_t>(settings.ranks));
  shared.result.times.resize(static_cast<std::size_t>(settings.ranks));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("nsp_local_job_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  shared.metrics_path = (folder / "metrics.jsonl").string();

  const nsp_backend* cpu = load_cpu_backend();
  LocalWorld world(settings.ranks);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(settings.ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < settings.ranks; ++r)
    threads.emplace_back([&, r] {
      SilentRing ring;
      const std::unique_ptr<Communicator> comm = world.communicator(r, ring);
      try {
        std::unique_ptr<FakeBackend> fake;
        if (settings.fake_device) fake = make_fake_backend(cpu, uint64_t{1} << 30, 17u + static_cast<unsigned>(r));
        Device device(fake ? fake->table() : cpu, fake ? "fake" : "cpu", 0, settings.threads);
        run_rank(shared, device, *comm);
      } catch (...) {
        failures[static_cast<std::size_t>(r)] = std::current_exception();
        try {
          comm->abort(1, "a rank failed");  // so that the others do not wait for it
        } catch (const Error&) {
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  rethrow_cause(failures);
  std::ifstream in(shared.metrics_path);
  for (std::string line; std::getline(in, line);) shared.result.metrics.push_back(line);
  std::filesystem::remove_all(folder);
  return shared.result;
}

double json_number(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return std::nan("");
  const char* text = line.c_str() + at + key.size() + 3;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text ? std::nan("") : value;
}

}  // namespace nsp::test
